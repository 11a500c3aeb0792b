import type { FlowComponents } from './document.js';
import { before, type Graph, graphOf } from './graph.js';
import { innerOf } from './kinds.js';
import { didYouMean } from './near.js';
import { type Finding, problemAt } from './problem.js';
import { readTemplate, type Reference } from './template.js';
import { templatesOf } from './templates-of.js';

/** What templates may ask for in some place. */
interface View {
  /** Components that can have run before. */
  readonly before: ReadonlySet<string>;
  /** Iterations around the place. */
  readonly around: ReadonlySet<string>;
}

/** What is wrong with the templates of components, here and within iterations. Where not all is known, no order is. */
export const templateProblems = (
  components: FlowComponents,
  isPartial: boolean,
): readonly Finding[] => {
  const all = allComponents(components);
  const kinds = new Map(all.map(({ id, component }) => [id, component.component_name]));
  const ids = [...kinds.keys()];
  const seen = new Set<string>();
  const repeated = all.flatMap(({ id, path }) => {
    if (!seen.has(id)) {
      seen.add(id);
      return [];
    }
    return [problemAt(path, 'has an id that another component of the document has', 'Rename one.')];
  });
  const within = (
    given: FlowComponents,
    path: readonly (string | number)[],
    view: View,
  ): readonly Finding[] => {
    const graph = graphOf(given);
    return [...graph.components].flatMap(([id, component]) => {
      const own = viewOf(graph, id, view);
      const place = [...path, id, 'params'];
      const texts = templatesOf(component).flatMap(({ path: at, text }) => {
        const { template, faults } = readTemplate(text, ids);
        const unknown = template.flatMap((part) =>
          typeof part === 'string' ? [] : faultsOf(part, own, kinds, isPartial),
        );
        return [...faults, ...unknown].map(({ problem, suggestion }) =>
          problemAt([...place, ...at], problem, suggestion),
        );
      });
      const inner = innerOf(component);
      if (inner === undefined) return texts;
      const innerView = { before: own.before, around: new Set([...own.around, id]) };
      return [...texts, ...within(inner, [...place, 'components'], innerView)];
    });
  };
  const outermost = { before: new Set<string>(), around: new Set<string>() };
  return [...repeated, ...within(components, ['components'], outermost)];
};

const viewOf = (graph: Graph, id: string, { before: above, around }: View): View => ({
  before: new Set([...above, ...before(graph, id)]),
  around,
});

const faultsOf = (
  reference: Reference,
  { before: ran, around }: View,
  kinds: ReadonlyMap<string, string>,
  isPartial: boolean,
): readonly { readonly problem: string; readonly suggestion: string | (() => string) }[] => {
  if (reference.of !== 'component') return [];
  const { id, field } = reference;
  const named = `names '${id}@${field}'`;
  if (field !== 'output') {
    return around.has(id)
      ? []
      : [
          {
            problem: `${named}, but is not within an iteration of that id`,
            suggestion: () => didYouMean(id, [...around], 'iterations around it'),
          },
        ];
  }
  if (!kinds.has(id)) {
    const suggestion = () => didYouMean(id, [...ran], 'components before it');
    return [{ problem: `${named}, but there is no component '${id}'`, suggestion }];
  }
  if (!ran.has(id) && !isPartial) {
    const suggestion = around.has(id)
      ? `Did you mean '{{${id}@item}}'?`
      : () => didYouMean(id, [...ran], 'components before it');
    return [{ problem: `${named}, which cannot have run before`, suggestion }];
  }
  return kinds.get(id) === 'switch'
    ? [{ problem: `${named}, but a switch has no output`, suggestion: 'Name what it looks at.' }]
    : [];
};

/** Every component of a document, and where it stands. */
export const allComponents = (
  components: FlowComponents,
  path: readonly (string | number)[] = ['components'],
): readonly {
  readonly id: string;
  readonly component: FlowComponents[string];
  readonly path: readonly (string | number)[];
}[] =>
  Object.entries(components).flatMap(([id, component]) => {
    const inner = innerOf(component);
    const place = [...path, id];
    return [
      { id, component, path: place },
      ...(inner === undefined ? [] : allComponents(inner, [...place, 'params', 'components'])),
    ];
  });
