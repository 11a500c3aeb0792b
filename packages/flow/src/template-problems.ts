import { innerOf, onErrorOf } from './branches.js';
import { didYouMean } from './did-you-mean.js';
import type { FlowComponent, FlowComponents } from './document.js';
import { type Graph, graphOf, predecessors } from './graph.js';
import { type Finding, problemAt } from './problem.js';
import { readTemplate, type Reference } from './template.js';
import { templatesOf } from './templates-of.js';

/** The IDs that a template may refer to. */
interface Visible {
  /** Components that may have run before. */
  readonly before: ReadonlySet<string>;
  readonly iterations: ReadonlySet<string>;
}

/** The names that the whole document has. */
interface Known {
  readonly components: ReadonlyMap<string, FlowComponent>;
  readonly variables: readonly string[];
  readonly isPartial: boolean;
}

/** Problems in templates, including those inside iterations. If the document is partial, the order is not checked. */
export const templateProblems = (
  components: FlowComponents,
  variables: readonly string[],
  isPartial: boolean,
): readonly Finding[] => {
  const all = allComponents(components);
  const known: Known = {
    components: new Map(all.map(({ id, component }) => [id, component])),
    variables,
    isPartial,
  };
  const ids = [...known.components.keys()];
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
      const inner = innerOf(component);
      const insideView = {
        before: new Set([...own.before, ...Object.keys(inner ?? {})]),
        iterations: new Set([...own.iterations, id]),
      };
      const texts = templatesOf(component).flatMap(({ path: at, text, isInside }) => {
        const { template, faults } = readTemplate(text, ids);
        const visible = isInside === true ? insideView : own;
        const unknown = template.flatMap((part) =>
          typeof part === 'string' || isOwnError(part, id, at)
            ? []
            : faultsOf(part, visible, known, component),
        );
        return [...faults, ...unknown].map(({ problem, suggestion }) =>
          problemAt([...place, ...at], problem, suggestion),
        );
      });
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

const isOwnError = (
  reference: Reference,
  id: string,
  path: readonly (string | number)[],
): boolean =>
  reference.of === 'component' &&
  reference.id === id &&
  reference.field === 'error' &&
  path[0] === 'on_error';

interface Fault {
  readonly problem: string;
  readonly suggestion: string | (() => string);
}

const faultsOf = (
  reference: Reference,
  view: Visible,
  known: Known,
  component: FlowComponent,
): readonly Fault[] => {
  switch (reference.of) {
    case 'variable': {
      const { name } = reference;
      if (known.variables.includes(name)) return [];
      const suggestion = () => didYouMean(name, known.variables, 'variables');
      return [{ problem: `names 'var.${name}', which is not a variable of the flow`, suggestion }];
    }
    case 'secret':
      if (component.component_name === 'http') return [];
      return [
        {
          problem: `names 'secret.${reference.name}', but only http components may use secrets`,
          suggestion: 'Use it in the url, a header or the body of one.',
        },
      ];
    case 'component':
      return componentFaults(reference, view, known);
    default:
      return [];
  }
};

const componentFaults = (
  { id, field, path }: Extract<Reference, { of: 'component' }>,
  { before: ran, iterations }: Visible,
  { components, isPartial }: Known,
): readonly Fault[] => {
  const problem = `names '${id}@${field}'`;
  const named = components.get(id);
  const kind = named?.component_name;
  const isInside = iterations.has(id);
  if (field === 'item' || field === 'index') {
    if (!isInside) {
      const suggestion = () => didYouMean(id, [...iterations], 'enclosing iterations');
      return [{ problem: `${problem}, but is not inside an iteration with that id`, suggestion }];
    }
    if (field === 'index' || kind !== 'loop') return [];
    const suggestion = `Did you mean '{{${id}@previous}}'?`;
    return [{ problem: `${problem}, but a loop has no items`, suggestion }];
  }
  if ((field === 'rounds' || field === 'previous') && isInside && kind === 'loop') return [];
  if (kind === undefined) {
    const suggestion = () => didYouMean(id, [...ran], 'components before it');
    return [{ problem: `${problem}, but there is no component '${id}'`, suggestion }];
  }
  if (!ran.has(id) && !isPartial) {
    const suggestion = isInside
      ? itemOf(id)
      : () => didYouMean(id, [...ran], 'components before it');
    return [{ problem: `${problem}, which cannot have run before`, suggestion }];
  }
  if (field === 'rounds' || field === 'previous' || field === 'done') {
    const suggestion = 'Only a loop has rounds.';
    return kind === 'loop' || isPartial ? [] : [{ problem: `${problem} of a ${kind}`, suggestion }];
  }
  if (field === 'error') {
    const isHandled = isPartial || (named !== undefined && onErrorOf(named) !== undefined);
    const suggestion = `Without 'on_error', an error of '${id}' ends the flow.`;
    if (!isHandled) return [{ problem: `${problem}, but '${id}' has no 'on_error'`, suggestion }];
    const [key] = path;
    if (key === undefined || fieldsOfErrors.includes(key)) return [];
    const fields = `An error has ${fieldsOfErrors.join(', ')}.`;
    return [{ problem: `${problem}.${key}`, suggestion: fields }];
  }
  if (kind !== 'switch' && kind !== 'set') return [];
  const suggestion = kind === 'switch' ? 'Use what it compares.' : 'Use its variables.';
  return [{ problem: `${problem}, but a ${kind} has no output`, suggestion }];
};

const fieldsOfErrors = ['code', 'message', 'status'];

const itemOf = (id: string): string => `Did you mean '{{${id}@item}}'?`;

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
