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

/** One component, ready to run. */
export interface CompiledNode {
  readonly id: string;
  /** The components that lead to it. */
  readonly upstream: readonly string[];
  /** Those of this graph whose outputs its templates name. */
  readonly reads: readonly string[];
  /** Where it leads unless it says otherwise. */
  readonly always: readonly string[];
  /** Whether it takes time, and so one of the places that there are. */
  readonly takesTime: boolean;
  /** Whether what comes of it is what the graph says. */
  readonly isMessage: boolean;
  /** Whether its words are those of the flow while they come. */
  readonly speaks: boolean;
  readonly work$: Work;
}

/** A graph, ready to run. */
export interface CompiledGraph {
  /** In an order in which nothing comes before what leads to it. */
  readonly nodes: readonly CompiledNode[];
  /** How many components run at once. */
  readonly concurrency: number;
}

/** What came of a run: what its messages said, in the order of the graph; or the reply with which somebody has ended it. */
export type Ran =
  | { readonly status: 'said'; readonly said: readonly Output[] }
  | { readonly status: 'ended'; readonly reply: Reply };

/** What came of one component. */
type Outcome = { readonly id: string } & (
  | { readonly status: 'skipped' }
  | { readonly status: 'done'; readonly output: Output; readonly to: readonly string[] }
  | { readonly status: 'ended'; readonly reply: Reply }
);

/**
 * Runs a graph: each component once at most, as soon as all that lead to it have settled, if one of them at least has led to it; else
 * it is skipped. Those that do not wait for each other run at once. Cold: emits once and completes, or errors with the first error;
 * leaving it ends all in the same tick.
 */
export const runGraph$ = (graph: CompiledGraph, scope: Scope): Observable<Ran> =>
  defer(() => merge(...outcomesOf(graph, scope).values())).pipe(
    takeWhile(({ status }) => status !== 'ended', true),
    reduce((settled, outcome) => settled.set(outcome.id, outcome), new Map<string, Outcome>()),
    map((settled) => ranBy(graph, settled)),
    // Handled only to be thrown again: by then, the others have been unsubscribed from.
    catchError((error: unknown) =>
      defer(() => {
        throw error;
      }),
    ),
  );

/** One shared Observable for each component: whoever waits for it gets its outcome. */
const outcomesOf = (
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
        return node.takesTime ? slots.hold$(run) : run();
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

/** Whether something has led to a component. */
const isDue = ({ id, upstream }: CompiledNode, settled: readonly Outcome[]): boolean =>
  upstream.length === 0 ||
  settled.some(
    (above) => above.status === 'done' && upstream.includes(above.id) && above.to.includes(id),
  );

const run$ = (
  { id, reads, always, speaks, work$ }: CompiledNode,
  settled: readonly Outcome[],
  scope: Scope,
): Observable<Outcome> => {
  const read = reads.map((name) => {
    const outcome = settled.find((above) => above.id === name);
    return [name, outcome?.status === 'done' ? outcome.output : noOutput] as const;
  });
  return work$({ ...scope, outputs: new Map([...scope.outputs, ...read]), speaks }).pipe(
    map((worked) => ({ to: always, ...worked, id })),
  );
};

const ranBy = ({ nodes }: CompiledGraph, settled: ReadonlyMap<string, Outcome>): Ran => {
  const outcomes = nodes.flatMap(({ id }) => settled.get(id) ?? []);
  const ended = outcomes.find((outcome) => outcome.status === 'ended');
  if (ended !== undefined) return { status: 'ended', reply: ended.reply };
  const messages = new Set(nodes.flatMap(({ id, isMessage }) => (isMessage ? id : [])));
  const said = outcomes.flatMap((outcome) =>
    outcome.status === 'done' && messages.has(outcome.id) && outcome.output.text !== ''
      ? outcome.output
      : [],
  );
  return { status: 'said', said };
};

/** What several messages say together, with an empty line between them; nothing where there are none. */
export const joined = ([first, ...more]: readonly Output[]): Output | undefined =>
  first === undefined || more.length === 0
    ? first
    : { text: [first, ...more].map(({ text }) => text).join('\n\n') };
