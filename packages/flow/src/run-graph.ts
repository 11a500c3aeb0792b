import type { Reply } from 'millrace';
import { callsInAnyOrder, callsInOrder } from 'millrace/teams';
import { createSemaphore } from 'millrace/traffic';
import {
  AsyncSubject,
  catchError,
  concatMap,
  defer,
  EMPTY,
  forkJoin,
  map,
  merge,
  type Observable,
  of,
  reduce,
  share,
  takeWhile,
  tap,
} from 'rxjs';
import { limits } from './limits.js';
import { joinTexts } from './render.js';
import { type FlowChange, noOutput, type Output, type Scope, type Variables } from './scope.js';
import { childCall, type Work, type WorkResult } from './work.js';

export interface CompiledNode {
  readonly id: string;
  readonly upstream: readonly string[];
  /** The components of this graph that its templates refer to. */
  readonly reads: readonly string[];
  /** The next components, unless it chooses others. */
  readonly always: readonly string[];
  /** Whether it counts towards the concurrency limit. */
  readonly isAsync: boolean;
  /** Whether its output is part of the graph's output. */
  readonly isMessage: boolean;
  /** Whether it streams as the flow itself. */
  readonly streams: boolean;
  readonly work$: Work;
}

export interface CompiledGraph {
  readonly nodes: readonly CompiledNode[];
  /** The maximum number of components that run concurrently. */
  readonly concurrency: number;
}

export type GraphResult =
  | {
      readonly status: 'done';
      /** Of the messages, in the order of the graph. */
      readonly outputs: readonly Output[];
      /** Of all components that have run, by ID. */
      readonly all: ReadonlyMap<string, Output>;
      readonly variables: ReadonlyMap<string, unknown>;
    }
  /** The reply of an interrupted or suspended component. */
  | { readonly status: 'ended'; readonly reply: Reply }
  | { readonly status: 'suspended'; readonly reply: Reply };

type Outcome = { readonly id: string; readonly variables: Variables } &
  /** A blocked component waits for a suspended one before it. */
  (
    | { readonly status: 'skipped' | 'blocked' }
    | { readonly status: 'done'; readonly output: Output; readonly to: readonly string[] }
    | { readonly status: 'ended'; readonly reply: Reply }
    | { readonly status: 'suspended'; readonly reply: Reply }
  );

/**
 * Runs a graph. Each component runs up to once, as soon as all components before it have settled, if at least one of
 * them continues with it; otherwise it is skipped. Independent components run concurrently. Cold: emits once and
 * completes, or errors with the first error. Unsubscribing stops all components in the same tick. A suspended component
 * blocks those after it; the others run to their end.
 */
export const runGraph$ = (graph: CompiledGraph, scope: Scope): Observable<GraphResult> =>
  defer(() => {
    allowAnyOrder(graph, scope);
    return merge(...createOutcomes(graph, scope).values());
  }).pipe(
    takeWhile(({ status }) => status !== 'ended', true),
    reduce((settled, outcome) => settled.set(outcome.id, outcome), new Map<string, Outcome>()),
    concatMap((settled) => {
      const result = toResult(graph, settled);
      // A component that waits below a root call with a journal emits nothing, and continues with the call.
      const isWaiting = result.status === 'done' && settled.size < graph.nodes.length;
      return isWaiting ? EMPTY : of(result);
    }),
    // Rethrown here, after the other components have been unsubscribed.
    catchError((error: unknown) =>
      defer(() => {
        throw error;
      }),
    ),
  );

/** Components begin as soon as they can. One that waits and has not begun was renamed, or is no longer due, if one after it begins. */
const allowAnyOrder = ({ nodes }: CompiledGraph, scope: Scope): void => {
  const { parent } = scope.options;
  if (parent === undefined) return;
  const own = childCall('', scope).callId ?? '';
  const before = new Map<string, ReadonlySet<string>>();
  for (const { id, upstream, reads } of nodes) {
    const direct = [...upstream, ...reads];
    before.set(
      own + id,
      new Set(direct.flatMap((it) => [own + it, ...(before.get(own + it) ?? [])])),
    );
  }
  callsInOrder(parent, before.keys());
  callsInAnyOrder(parent, (begins, waits) => {
    const earlier = before.get(begins);
    if (earlier === undefined) return false;
    // The calls of other items and rounds have graphs of their own.
    return !waits.startsWith(own) || (before.has(waits) && !earlier.has(waits));
  });
};

/** Creates one shared Observable per component, which replays its outcome. */
const createOutcomes = (
  { nodes, concurrency }: CompiledGraph,
  scope: Scope,
): ReadonlyMap<string, Observable<Outcome>> => {
  const slots = createSemaphore({ max: concurrency, maxQueue: limits.components });
  const outcomes = new Map<string, Observable<Outcome>>();
  for (const [place, node] of nodes.entries()) {
    const above = [...node.upstream, ...node.reads].flatMap((id) => outcomes.get(id) ?? []);
    const settled$ = above.length === 0 ? of([]) : forkJoin(above);
    const outcome$ = settled$.pipe(
      concatMap((settled) => {
        const { id } = node;
        const variables = mergeVariables([{ variables: scope.variables }, ...settled]);
        if (settled.some(isWaiting)) return of<Outcome>({ id, variables, status: 'blocked' });
        if (!isDue(node, settled)) {
          scope.report({ id, status: 'skipped' });
          return of<Outcome>({ id, variables, status: 'skipped' });
        }
        const run = (): Observable<Outcome> => run$(node, place, settled, { ...scope, variables });
        return node.isAsync ? slots.hold$(run) : run();
      }),
      share({
        connector: () => new AsyncSubject(),
        resetOnComplete: false,
        resetOnError: false,
        resetOnRefCountZero: true,
      }),
    );
    outcomes.set(node.id, outcome$);
  }
  return outcomes;
};

const isWaiting = ({ status }: Outcome): boolean => status === 'suspended' || status === 'blocked';

/** Whether a component before it continues with this one. */
const isDue = ({ id, upstream }: CompiledNode, settled: readonly Outcome[]): boolean =>
  upstream.length === 0 ||
  settled.some(
    (above) => above.status === 'done' && upstream.includes(above.id) && above.to.includes(id),
  );

/** Of several values of a variable, the one that was set later in the graph counts, even if it ran first. */
const mergeVariables = (all: readonly { readonly variables: Variables }[]): Variables =>
  all.reduce<Variables>(
    (merged, { variables }) =>
      merged === variables
        ? merged
        : new Map([
            ...merged,
            ...[...variables].filter(
              ([name, { place }]) => place > (merged.get(name)?.place ?? -2),
            ),
          ]),
    new Map(),
  );

const run$ = (
  { id, reads, always, isAsync, streams, work$ }: CompiledNode,
  place: number,
  settled: readonly Outcome[],
  scope: Scope,
): Observable<Outcome> => {
  const read = reads.map((name) => {
    const outcome = settled.find((above) => above.id === name);
    return [name, outcome?.status === 'done' ? outcome.output : noOutput] as const;
  });
  const outputs = new Map([...scope.outputs, ...read]);
  let latest: FlowChange = { id, status: 'suspended' };
  return defer(() => {
    if (isAsync) scope.report({ id, status: 'running' });
    return work$({ ...scope, outputs, streams });
  }).pipe(
    tap({
      next: (worked) => {
        latest = changeBy(id, worked);
      },
      complete: () => {
        scope.report(latest);
      },
      error: () => {
        scope.report({ id, status: 'failed' });
      },
    }),
    map((worked): Outcome => {
      const { variables } = scope;
      if (worked.status !== 'done') return { ...worked, id, variables };
      const { output, to = always } = worked;
      const changed = [...(worked.variables ?? [])].map(
        ([name, value]) => [name, { value, place }] as const,
      );
      return { id, status: 'done', output, to, variables: new Map([...variables, ...changed]) };
    }),
  );
};

const changeBy = (id: string, worked: WorkResult): FlowChange => {
  if (worked.status === 'suspended') return { id, status: 'suspended' };
  if (worked.status === 'ended') return { id, status: 'interrupted' };
  const { output, variables } = worked;
  const status = output.error === undefined ? 'done' : 'failed';
  return { id, status, ...(variables !== undefined && { variables }) };
};

const toResult = ({ nodes }: CompiledGraph, settled: ReadonlyMap<string, Outcome>): GraphResult => {
  const outcomes = nodes.flatMap(({ id }) => settled.get(id) ?? []);
  const ended = outcomes.find((outcome) => outcome.status === 'ended');
  if (ended !== undefined) return { status: 'ended', reply: ended.reply };
  const waiting = suspendedReply(
    outcomes.flatMap((outcome) => (outcome.status === 'suspended' ? outcome.reply : [])),
  );
  if (waiting !== undefined) return { status: 'suspended', reply: waiting };
  const messages = new Set(nodes.flatMap(({ id, isMessage }) => (isMessage ? id : [])));
  const ran = outcomes.flatMap((outcome) => (outcome.status === 'done' ? outcome : []));
  const variables = [...mergeVariables(outcomes)].filter(([, { place }]) => place >= 0);
  return {
    status: 'done',
    outputs: ran.flatMap(({ id, output }) =>
      messages.has(id) && output.text !== '' ? output : [],
    ),
    all: new Map(ran.map(({ id, output }) => [id, output])),
    variables: new Map(variables.map(([name, { value }]) => [name, value])),
  };
};

/** One reply that waits for all results that some replies wait for. */
export const suspendedReply = ([first, ...more]: readonly Reply[]): Reply | undefined =>
  first === undefined || more.length === 0
    ? first
    : { ...first, suspensions: [first, ...more].flatMap(({ suspensions = [] }) => suspensions) };

/** Joins outputs with an empty line between them; `undefined` for an empty list. */
export const joinOutputs = ([first, ...more]: readonly Output[]): Output | undefined =>
  first === undefined || more.length === 0
    ? first
    : {
        text: joinTexts(
          [first, ...more].map(({ text }) => text),
          '\n\n',
        ),
      };
