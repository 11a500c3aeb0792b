import { innerOf } from './branches.js';
import { didYouMean } from './did-you-mean.js';
import type { FlowComponents } from './document.js';
import { type Graph, graphOf, predecessors } from './graph.js';
import { type Finding, problemAt } from './problem.js';
import { readTemplate, type Reference } from './template.js';
import { templatesOf } from './templates-of.js';

/** The IDs that a template may refer to. */
interface Visible {
  /** Components that may have run before. */
  readonly before: ReadonlySet<string>;
  /** Enclosing iterations. */
  readonly iterations: ReadonlySet<string>;
}

/** Problems in templates, including those inside iterations. If the document is partial, the order is not checked. */
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
    return [problemAt(path, 'has the same id as another component', 'Rename one of them.')];
  });
  const within = (
    given: FlowComponents,
    path: readonly (string | number)[],
    view: Visible,
  ): readonly Finding[] => {
    const graph = graphOf(given);
    return [...graph.components].flatMap(([id, component]) => {
      const own = visibleAt(graph, id, view);
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
      const innerView = { before: own.before, iterations: new Set([...own.iterations, id]) };
      return [...texts, ...within(inner, [...place, 'components'], innerView)];
    });
  };
  const outermost = { before: new Set<string>(), iterations: new Set<string>() };
  return [...repeated, ...within(components, ['components'], outermost)];
};

const visibleAt = (graph: Graph, id: string, { before, iterations }: Visible): Visible => ({
  before: new Set([...before, ...predecessors(graph, id)]),
  iterations,
});

const faultsOf = (
  reference: Reference,
  { before: ran, iterations }: Visible,
  kinds: ReadonlyMap<string, string>,
  isPartial: boolean,
): readonly { readonly problem: string; readonly suggestion: string | (() => string) }[] => {
  if (reference.of !== 'component') return [];
  const { id, field } = reference;
  const named = `names '${id}@${field}'`;
  if (field !== 'output') {
    return iterations.has(id)
      ? []
      : [
          {
            problem: `${named}, but is not inside an iteration with that id`,
            suggestion: () => didYouMean(id, [...iterations], 'enclosing iterations'),
          },
        ];
  }
  if (!kinds.has(id)) {
    const suggestion = () => didYouMean(id, [...ran], 'components before it');
    return [{ problem: `${named}, but there is no component '${id}'`, suggestion }];
  }
  if (!ran.has(id) && !isPartial) {
    const suggestion = iterations.has(id)
      ? `Did you mean '{{${id}@item}}'?`
      : () => didYouMean(id, [...ran], 'components before it');
    return [{ problem: `${named}, which cannot have run before`, suggestion }];
  }
  return kinds.get(id) === 'switch'
    ? [
        {
          problem: `${named}, but a switch has no output`,
          suggestion: 'Use what it compares.',
        },
      ]
    : [];
};

/** All components, including those inside iterations, with their paths. */
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
