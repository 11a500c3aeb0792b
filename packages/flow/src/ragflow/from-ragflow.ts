import type {
  FlowCategory,
  FlowComponent,
  FlowComponents,
  FlowDocument,
  FlowVariable,
} from '../document.js';
import { reachable } from '../graph.js';
import { allComponents } from '../template-problems.js';
import { type Canvas, maxComponents, readCanvas, textsIn, type Unmapped } from './canvas.js';
import { convert } from './components.js';
import { ofType, typeFrom } from './conversion.js';
import { nextOf, withMessage } from './repetition.js';
import { createReferences, variableNamed } from './references.js';

/** A flow that was read from a canvas. */
export interface FromRagflow {
  /** `undefined` if the value is no canvas of an agent, too large for one, or of the first version, with `Answer`. */
  readonly document: FlowDocument | undefined;
  /** Everything of the canvas that the document has in another way, or not at all. */
  readonly unmapped: readonly Unmapped[];
}

/**
 * Reads an agent canvas of RAGFlow: its DSL, or the file of a template, as a value or as JSON text. The document has the
 * same component IDs. Models, tools, retrievers, functions and secrets come from the program, by the names that the
 * document uses; `problemsIn(document, resources)` lists those that are missing. It never throws.
 *
 * | Canvas | Document |
 * | --- | --- |
 * | `Begin`, `Message`, `Agent`, `LLM`, `Generate`, `Retrieval`, `Categorize`, `Switch` | the component of that kind |
 * | `Iteration`, `Loop`, `ExitLoop` | `iterate`, `loop`, `set` |
 * | `VariableAssigner`, `VariableAggregator`, `StringTransform` (merge) | `set` |
 * | `UserFillUp`, `Invoke`, `CodeExec` | `human`, `http`, `code` |
 * | any other component | `tool` |
 */
export const fromRagflow = (given: unknown): FromRagflow => {
  const canvas = readCanvas(given);
  if (canvas === undefined) {
    const reason = `It is no canvas: the DSL of a canvas is an object with 'components', up to ${maxComponents}.`;
    return { document: undefined, unmapped: [{ component: '', reason }] };
  }
  const kinds = new Set([...canvas.components.values()].map(({ kind }) => kind));
  if (kinds.has('answer')) {
    const reason =
      "Its components 'Answer' are of the first version of canvases. Save it with a current version.";
    return { document: undefined, unmapped: [{ component: '', reason }] };
  }
  if (!kinds.has('begin')) {
    const names = [...canvas.components.values()].map(({ original, name }) => ({
      component: original,
      reason: `A flow has no component '${name}'.`,
    }));
    const reason = "It has no 'Begin', so it is no canvas of an agent.";
    return { document: undefined, unmapped: [{ component: '', reason }, ...names] };
  }
  const unmapped: Unmapped[] = [];
  const variables: Record<string, FlowVariable> = Object.fromEntries(
    [...canvas.variables].map(([name, { type: word, value }]) => {
      const type = typeFrom(word);
      const start = ofType(type, value);
      return [variableNamed(name), { type, ...(start !== undefined && { default: start }) }];
    }),
  );
  const level = convertLevel(canvas, undefined, unmapped, variables);
  const components = withMessage(level, 'answer', undefined);
  if (components !== level) {
    const reason = "It has no 'Message', so the outputs at its end are the answer.";
    unmapped.push({ component: '', reason });
  }
  const placed = new Set<string | undefined>([undefined]);
  // Iterating over a Set includes items that are added meanwhile.
  for (const parent of placed) {
    for (const it of canvas.components.values()) if (it.parent === parent) placed.add(it.original);
  }
  const stray = [...canvas.components.keys()].filter((id) => !placed.has(id));
  unmapped.push(
    ...stray.map((component) => ({
      component,
      reason: 'It is inside of itself, so it is left out.',
    })),
  );
  const hasVariables = Object.keys(variables).length > 0;
  const document = {
    version: 1,
    name: canvas.name,
    ...(hasVariables && { variables }),
    components,
  } as const;
  return { document, unmapped };
};

/** Converts the components of the canvas, or those inside one. Adds variables and what cannot be mapped. */
const convertLevel = (
  canvas: Canvas,
  parent: string | undefined,
  unmapped: Unmapped[],
  variables: Record<string, FlowVariable>,
): FlowComponents => {
  const level = [...canvas.components.values()].filter((it) => it.parent === parent);
  const converted = level.flatMap((it) => {
    const note = (param: string, reason: string): void => {
      const isKnown = unmapped.some(
        (known) =>
          known.component === it.original && known.param === param && known.reason === reason,
      );
      if (!isKnown) unmapped.push({ component: it.original, param, reason });
    };
    const {
      component,
      before,
      variables: own,
    } = convert({
      ...{ canvas, it, note },
      refs: createReferences(canvas, it, note),
      idsOf: (originals, param) =>
        [...new Set(textsIn(originals))].flatMap((original) => {
          const target = canvas.components.get(original);
          // There, components inside an iteration may lead to its start, or to the iteration.
          if (target?.kind === 'iterationitem' || target?.kind === 'loopitem') return [];
          if (target !== undefined && target.parent === parent) return [target.id];
          if (original !== parent)
            note(param, `It leads to '${original}', which is not beside it.`);
          return [];
        }),
      inside: () => convertLevel(canvas, it.original, unmapped, variables),
    });
    Object.assign(variables, own);
    return [{ it, component, before }];
  });
  const befores = converted.flatMap(({ it, before }) =>
    before === undefined ? [] : [[it.id, { id: `${it.id}_start`, before }] as const],
  );
  const renamed = new Map(befores.map(([id, { id: start }]) => [id, start]));
  const components: FlowComponents = Object.fromEntries([
    ...converted.map(({ it, component }) => [it.id, relinked(component, renamed)] as const),
    ...befores.map(
      ([id, { id: start, before }]) => [start, { ...before, downstream: [id] }] as const,
    ),
  ]);
  return reached(canvas, components, unmapped);
};

/** Leads to what runs before a component, instead of the component. */
const relinked = (
  component: FlowComponent,
  renamed: ReadonlyMap<string, string>,
): FlowComponent => {
  if (renamed.size === 0) return component;
  const rename = (ids: readonly string[]): readonly string[] =>
    ids.map((id) => renamed.get(id) ?? id);
  switch (component.component_name) {
    case 'switch': {
      const { cases, otherwise } = component.params;
      const moved = cases.map((it) => ({ ...it, to: rename(it.to) }));
      const params = { cases: moved, ...(otherwise && { otherwise: rename(otherwise) }) };
      return { ...component, params };
    }
    case 'categorize': {
      const { categories, otherwise, ...rest } = component.params;
      const moved = Object.entries(categories).map(
        ([name, it]): readonly [string, FlowCategory] => [name, { ...it, to: rename(it.to) }],
      );
      const params = {
        ...rest,
        categories: Object.fromEntries(moved),
        ...(otherwise && { otherwise: rename(otherwise) }),
      };
      return { ...component, params };
    }
    default:
      return component.downstream === undefined
        ? component
        : { ...component, downstream: rename(component.downstream) };
  }
};

/** The components that the begin leads to: others would make the document invalid. */
const reached = (
  canvas: Canvas,
  components: FlowComponents,
  unmapped: Unmapped[],
): FlowComponents => {
  const begins = Object.entries(components).flatMap(([id, { component_name: name }]) =>
    name === 'begin' ? [id] : [],
  );
  if (begins.length === 0) return components;
  const upstream = (id: string): readonly string[] =>
    Object.entries(components).flatMap(([other, it]) =>
      it.upstream?.includes(id) === true ? [other] : [],
    );
  const found = reachable(begins, (id) => {
    const component = components[id];
    return component === undefined ? [] : [...nextOf(component), ...upstream(id)];
  });
  const originals = new Map(
    [...canvas.components.values()].map(({ id, original }) => [id, original]),
  );
  const lost = Object.fromEntries(Object.entries(components).filter(([id]) => !found.has(id)));
  allComponents(lost).forEach(({ id }) => {
    const reason = 'Nothing leads to it, so it is left out.';
    unmapped.push({ component: originals.get(id) ?? id, reason });
  });
  return Object.fromEntries(Object.entries(components).filter(([id]) => found.has(id)));
};
