import { branchesOf, onErrorOf } from './branches.js';
import { type Graph, reachable } from './graph.js';
import { templateOf } from './render.js';

/**
 * The agents that stream as the flow itself: a message that always follows consists of just their answer, and no run
 * that reaches it can reach another message.
 */
export const streamingAgents = (graph: Graph): ReadonlySet<string> => {
  const messages = [...graph.components].flatMap(([id, component]) =>
    component.component_name === 'message' ? [{ id, content: component.params.content }] : [],
  );
  const branches = reachableByBranch(graph);
  /** Whether some choice reaches only one of two messages. */
  const areExclusive = (one: string, other: string): boolean =>
    branches.some((group) => !group.some((found) => found.has(one) && found.has(other)));
  return new Set(
    messages.flatMap(({ id, content }) => {
      const others = messages.filter((other) => other.id !== id);
      const source = verbatim(content);
      return source !== undefined &&
        canStream(graph, source) &&
        graph.always.get(source)?.has(id) === true &&
        others.every((other) => areExclusive(id, other.id))
        ? [source]
        : [];
    }),
  );
};

/** The component whose whole output a message consists of. */
const verbatim = (content: string): string | undefined => {
  const [part, ...more] = templateOf(content);
  return more.length === 0 &&
    typeof part === 'object' &&
    part.of === 'component' &&
    part.field === 'output' &&
    part.path.length === 0
    ? part.id
    : undefined;
};

/** Structured output is not readable while it streams, and `on_error` may replace the text of a failed agent. */
const canStream = ({ components }: Graph, id: string): boolean => {
  const component = components.get(id);
  return (
    component?.component_name === 'agent' &&
    component.params.output === undefined &&
    onErrorOf(component) === undefined
  );
};

/** For each component that chooses, the components that are reachable by each of its branches. */
const reachableByBranch = (graph: Graph): readonly (readonly ReadonlySet<string>[])[] =>
  [...graph.components].flatMap(([id, component]) => {
    const choices = branchesOf(component)?.map(({ to }) => to);
    // It may also continue with nothing, or fail.
    const ways = choices?.concat([[], onErrorOf(component)?.to ?? []]);
    return ways === undefined ? [] : [ways.map((to) => reachableIf(graph, id, to))];
  });

/** The components that are reachable if one component only continues with `to`. */
const reachableIf = (graph: Graph, id: string, to: readonly string[]): ReadonlySet<string> => {
  const begins = [...graph.components.keys()].filter((it) => graph.upstream.get(it)?.size === 0);
  return reachable(begins, (it) => (it === id ? to : (graph.downstream.get(it) ?? [])));
};
