import type { FlowComponent, FlowComponents } from './document.js';
import { choicesOf, onErrorOf } from './kinds.js';

/** What leads where in one list of components. Ids that no component has are left out. */
export interface Graph {
  readonly components: ReadonlyMap<string, FlowComponent>;
  /** By the ends of all ways out of it. */
  readonly downstream: ReadonlyMap<string, ReadonlySet<string>>;
  readonly upstream: ReadonlyMap<string, ReadonlySet<string>>;
  /** Where a component leads that neither chooses nor fails. */
  readonly always: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Joins components by what each end says of where they lead. */
export const graphOf = (given: FlowComponents): Graph => {
  const components = new Map(Object.entries(given));
  const known = (ids: readonly string[] = []): readonly string[] =>
    ids.filter((id) => components.has(id));
  const always = new Map<string, ReadonlySet<string>>();
  const downstream = new Map<string, ReadonlySet<string>>();
  for (const [id, component] of components) {
    const named = [...components].flatMap(([other, { upstream = [] }]) =>
      upstream.includes(id) ? [other] : [],
    );
    const own = known(component.downstream);
    const inError = known(onErrorOf(component)?.to);
    const choices = choicesOf(component)?.flatMap(({ to }) => known(to));
    const plain = named.filter((other) => own.includes(other) || !inError.includes(other));
    always.set(id, new Set(choices === undefined ? [...own, ...plain] : []));
    downstream.set(id, new Set([...own, ...named, ...(choices ?? []), ...inError]));
  }
  const upstream = new Map(
    [...components.keys()].map((id) => [
      id,
      new Set([...downstream].flatMap(([from, to]) => (to.has(id) ? [from] : []))),
    ]),
  );
  return { components, downstream, upstream, always };
};

/** The ids that a walk from some of them comes by, themselves among them. */
export const reachable = (
  from: Iterable<string>,
  next: (id: string) => Iterable<string>,
): ReadonlySet<string> => {
  const found = new Set(from);
  // A set that grows while it is walked is walked to its end.
  for (const id of found) for (const to of next(id)) found.add(to);
  return found;
};

/** The components that can have run before one. */
export const before = ({ upstream }: Graph, id: string): ReadonlySet<string> => {
  const nextUp = (it: string): Iterable<string> => upstream.get(it) ?? [];
  return reachable(nextUp(id), nextUp);
};

/** The ids in an order in which nothing comes before what leads to it, else as the document has them. Of a cycle, none is there. */
export const topological = ({ components, upstream }: Graph): readonly string[] => {
  const order = new Set<string>();
  const isNext = (id: string): boolean =>
    !order.has(id) && [...(upstream.get(id) ?? [])].every((it) => order.has(it));
  const ids = [...components.keys()];
  for (let next = ids.find(isNext); next !== undefined; next = ids.find(isNext)) order.add(next);
  return [...order];
};

/** Cycles, each from its first component in the document on and back to it; one at least where there is any. */
export const cyclesIn = (graph: Graph): readonly (readonly string[])[] => {
  const { components, downstream } = graph;
  const sorted = new Set(topological(graph));
  const told = new Set<string>();
  const cycles: (readonly string[])[] = [];
  for (const id of components.keys()) {
    if (sorted.has(id) || told.has(id)) continue;
    const cycle = wayBack(id, (it) => downstream.get(it) ?? []);
    if (cycle === undefined) continue;
    cycle.forEach((it) => told.add(it));
    cycles.push(cycle);
  }
  return cycles;
};

/** The shortest way from an id to itself. */
const wayBack = (
  id: string,
  next: (id: string) => Iterable<string>,
): readonly string[] | undefined => {
  const ways = new Map<string, readonly string[]>([[id, [id]]]);
  for (const [at, way] of ways) {
    for (const to of next(at)) {
      if (to === id) return [...way, id];
      if (!ways.has(to)) ways.set(to, [...way, to]);
    }
  }
  return undefined;
};
