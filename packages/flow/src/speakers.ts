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
  const decisions = decisionsIn(graph);
  /** Whether there is a choice of which every way leads to one of them at most. */
  const neverBoth = (one: string, other: string): boolean =>
    decisions.some((ways) => !ways.some((found) => found.has(one) && found.has(other)));
  return new Set(
    messages.flatMap(({ id, content }) => {
      const others = messages.filter((other) => other.id !== id);
      const speaker = verbatim(content);
      return speaker !== undefined &&
        canSpeak(graph, speaker) &&
        graph.always.get(speaker)?.has(id) === true &&
        others.every((other) => neverBoth(id, other.id))
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

/** For each component that chooses, what can be come by by each of its ways. */
const decisionsIn = (graph: Graph): readonly (readonly ReadonlySet<string>[])[] =>
  [...graph.components].flatMap(([id, component]) => {
    const choices = choicesOf(component)?.map(({ to }) => to);
    // It may also be that it leads nowhere, or fails.
    const ways = choices?.concat([[], onErrorOf(component)?.to ?? []]);
    return ways === undefined ? [] : [ways.map((to) => reachableBy(graph, id, to))];
  });

/** What can be come by when one component leads there and nowhere else. */
const reachableBy = (graph: Graph, id: string, to: readonly string[]): ReadonlySet<string> => {
  const begins = [...graph.components.keys()].filter((it) => graph.upstream.get(it)?.size === 0);
  return reachable(begins, (it) => (it === id ? to : (graph.downstream.get(it) ?? [])));
};
