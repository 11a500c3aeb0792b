import { choicesOf, onErrorOf } from './kinds.js';
import { type Graph, reachable } from './graph.js';
import { templateOf } from './render.js';

/**
 * The agents whose words are those of the flow while they come: a message says their answer as it is and follows for certain, and nothing
 * else can be said in a run that comes by there.
 */
export const speakersIn = (graph: Graph): ReadonlySet<string> => {
  const messages = [...graph.components].flatMap(([id, component]) =>
    component.component_name === 'message' ? [{ id, content: component.params.content }] : [],
  );
  return new Set(
    messages.flatMap(({ id, content }) => {
      const others = messages.filter((other) => other.id !== id);
      const speaker = verbatim(content);
      return speaker !== undefined &&
        canSpeak(graph, speaker) &&
        graph.always.get(speaker)?.has(id) === true &&
        others.every((other) => neverBoth(graph, id, other.id))
        ? [speaker]
        : [];
    }),
  );
};

/** The component whose whole output a message says, and nothing else. */
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

/** What is not a text is not for people to read while it comes, and what may fail may have to be said otherwise. */
const canSpeak = ({ components }: Graph, id: string): boolean => {
  const component = components.get(id);
  return (
    component?.component_name === 'agent' &&
    component.params.output === undefined &&
    onErrorOf(component) === undefined
  );
};

/** Whether there is a choice of which every way leads to one of two components at most. */
const neverBoth = (graph: Graph, one: string, other: string): boolean =>
  [...graph.components].some(([id, component]) =>
    choicesOf(component)
      ?.map(({ to }) => to)
      // It may also be that it leads nowhere, or fails: then neither may follow.
      .concat([[], onErrorOf(component)?.to ?? []])
      .every((to) => {
        const found = reachableBy(graph, id, to);
        return !(found.has(one) && found.has(other));
      }),
  );

/** What can be come by when one component leads there and nowhere else. */
const reachableBy = (graph: Graph, id: string, to: readonly string[]): ReadonlySet<string> => {
  const begins = [...graph.components.keys()].filter((it) => graph.upstream.get(it)?.size === 0);
  return reachable(begins, (it) => (it === id ? to : (graph.downstream.get(it) ?? [])));
};
