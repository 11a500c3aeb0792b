import { branchesOf, onErrorOf } from './branches.js';
import type { FlowComponent, FlowComponents } from './document.js';

/** The links between components. Unknown IDs are left out. */
export interface Graph {
  readonly components: ReadonlyMap<string, FlowComponent>;
  /** All components that may follow each component. */
  readonly downstream: ReadonlyMap<string, ReadonlySet<string>>;
  readonly upstream: ReadonlyMap<string, ReadonlySet<string>>;
  /** The components that follow each component unless it chooses or fails. */
  readonly always: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Builds a graph from the links that either end defines. */
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
    const choices = branchesOf(component)?.flatMap(({ to }) => known(to));
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

/** The IDs that are reachable from some IDs, including these. */
export const reachable = (
  from: Iterable<string>,
  next: (id: string) => Iterable<string>,
): ReadonlySet<string> => {
  const found = new Set(from);
  // Iterating over a Set includes items that are added meanwhile.
  for (const id of found) for (const to of next(id)) found.add(to);
  return found;
};

export const predecessors = ({ upstream }: Graph, id: string): ReadonlySet<string> => {
  const nextUp = (it: string): Iterable<string> => upstream.get(it) ?? [];
  return reachable(nextUp(id), nextUp);
};

/** The IDs in topological, then document order. Cycles and their successors are left out. */
export const topological = ({ components, upstream }: Graph): readonly string[] => {
  const order = new Set<string>();
  const isNext = (id: string): boolean =>
    !order.has(id) && [...(upstream.get(id) ?? [])].every((it) => order.has(it));
  const ids = [...components.keys()];
  for (let next = ids.find(isNext); next !== undefined; next = ids.find(isNext)) order.add(next);
  return [...order];
};

/** Cycles, each starting and ending with its first component in the document. Returns at least one if there are any. */
export const cyclesIn = (graph: Graph): readonly (readonly string[])[] => {
  const { components, downstream } = graph;
  const sorted = new Set(topological(graph));
  const reported = new Set<string>();
  const cycles: (readonly string[])[] = [];
  for (const id of components.keys()) {
    if (sorted.has(id) || reported.has(id)) continue;
    const cycle = shortestCycle(id, (it) => downstream.get(it) ?? []);
    if (cycle === undefined) continue;
    cycle.forEach((it) => reported.add(it));
    cycles.push(cycle);
  }
  return cycles;
};

const shortestCycle = (
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
