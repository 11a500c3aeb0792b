import type { Reply } from '@millrace/core';
import { createSemaphore } from '@millrace/core/traffic';
import {
  AsyncSubject,
  catchError,
  concatMap,
  defer,
  forkJoin,
  map,
  merge,
  type Observable,
  of,
  reduce,
  share,
  takeWhile,
} from 'rxjs';
import { limits } from './limits.js';
import { noOutput, type Output, type Scope } from './scope.js';
import type { Work } from './work.js';

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
  /** In topological order. */
  readonly nodes: readonly CompiledNode[];
  /** The maximum number of components that run concurrently. */
  readonly concurrency: number;
}

/** The outputs of the messages, in the order of the graph; or the reply of an interrupted component. */
export type GraphResult =
  | { readonly status: 'done'; readonly outputs: readonly Output[] }
  | { readonly status: 'ended'; readonly reply: Reply };

type Outcome = { readonly id: string } & (
  | { readonly status: 'skipped' }
  | { readonly status: 'done'; readonly output: Output; readonly to: readonly string[] }
  | { readonly status: 'ended'; readonly reply: Reply }
);

/**
 * Runs a graph. Each component runs up to once, as soon as all components before it have settled, if at least one of
 * them continues with it; otherwise it is skipped. Independent components run concurrently. Cold: emits once and
 * completes, or errors with the first error. Unsubscribing stops all components in the same tick.
 */
export const runGraph$ = (graph: CompiledGraph, scope: Scope): Observable<GraphResult> =>
  defer(() => merge(...createOutcomes(graph, scope).values())).pipe(
    takeWhile(({ status }) => status !== 'ended', true),
    reduce((settled, outcome) => settled.set(outcome.id, outcome), new Map<string, Outcome>()),
    map((settled) => toResult(graph, settled)),
    // Rethrown here, after the other components have been unsubscribed.
    catchError((error: unknown) =>
      defer(() => {
        throw error;
      }),
    ),
  );

/** Creates one shared Observable per component, which replays its outcome. */
const createOutcomes = (
  { nodes, concurrency }: CompiledGraph,
  scope: Scope,
): ReadonlyMap<string, Observable<Outcome>> => {
  const slots = createSemaphore({ max: concurrency, maxQueue: limits.components });
  const outcomes = new Map<string, Observable<Outcome>>();
  for (const node of nodes) {
    const above = [...node.upstream, ...node.reads].flatMap((id) => outcomes.get(id) ?? []);
    const settled$ = above.length === 0 ? of([]) : forkJoin(above);
    const outcome$ = settled$.pipe(
      concatMap((settled) => {
        if (!isDue(node, settled)) return of<Outcome>({ id: node.id, status: 'skipped' });
        const run = (): Observable<Outcome> => run$(node, settled, scope);
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

/** Whether a component before it continues with this one. */
const isDue = ({ id, upstream }: CompiledNode, settled: readonly Outcome[]): boolean =>
  upstream.length === 0 ||
  settled.some(
    (above) => above.status === 'done' && upstream.includes(above.id) && above.to.includes(id),
  );

const run$ = (
  { id, reads, always, streams, work$ }: CompiledNode,
  settled: readonly Outcome[],
  scope: Scope,
): Observable<Outcome> => {
  const read = reads.map((name) => {
    const outcome = settled.find((above) => above.id === name);
    return [name, outcome?.status === 'done' ? outcome.output : noOutput] as const;
  });
  return work$({ ...scope, outputs: new Map([...scope.outputs, ...read]), streams }).pipe(
    map((worked) => ({ to: always, ...worked, id })),
  );
};

const toResult = ({ nodes }: CompiledGraph, settled: ReadonlyMap<string, Outcome>): GraphResult => {
  const outcomes = nodes.flatMap(({ id }) => settled.get(id) ?? []);
  const ended = outcomes.find((outcome) => outcome.status === 'ended');
  if (ended !== undefined) return { status: 'ended', reply: ended.reply };
  const messages = new Set(nodes.flatMap(({ id, isMessage }) => (isMessage ? id : [])));
  const outputs = outcomes.flatMap((outcome) =>
    outcome.status === 'done' && messages.has(outcome.id) && outcome.output.text !== ''
      ? outcome.output
      : [],
  );
  return { status: 'done', outputs };
};

/** Joins outputs with an empty line between them; `undefined` for an empty list. */
export const joinOutputs = ([first, ...more]: readonly Output[]): Output | undefined =>
  first === undefined || more.length === 0
    ? first
    : { text: [first, ...more].map(({ text }) => text).join('\n\n') };
