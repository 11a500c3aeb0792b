import { catchError, EMPTY, filter, from, map, mergeMap, type Observable, of, toArray } from 'rxjs';
import { type MillraceError, misuse, toMillraceError } from '../values/errors.js';
import { isFunction, type Rule, wholeNumber } from '../values/options.js';
import type { Reply } from '../values/reply.js';
import { calls$, type ReadableCall } from './call-summary.js';
import { isStoreOfCalls } from './call-store-driver.js';
import type { Callable } from '../call/callable.js';
import type { CallOptions } from '../call/call-options.js';
import type { Use } from '../seams/layer.js';

/** Options of a resumed call. Options that JSON cannot express must be passed again. */
export interface ResumeOptions extends Omit<CallOptions, 'callId' | 'parent'> {
  /**
   * For a tool call that was running when its process ended: the call ends as `suspended`, and a person supplies the result
   * (`ask`, the default; without a session, `report`), the model is informed that the outcome is unknown (`report`), or the tool runs again
   * (`rerun`). Tools that are `idempotent` always run again, with the same key.
   */
  readonly onUncertain?: 'ask' | 'report' | 'rerun' | undefined;
}

export interface Resumable<out Output = unknown> extends Pick<Callable<Output>, 'call$'> {
  with(...layers: Use): Pick<Callable, 'call$' | 'stream$'>;
}

/** Options of `resumeAll$`. The options of a resumed call apply to each. */
export interface ResumeAllOptions extends ResumeOptions {
  /** How many calls run at the same time. A call that waits for an approval counts. Default: 4. */
  readonly parallel?: number | undefined;
  /** Which of the unfinished calls to resume. Default: all but forks, which may not have been meant to run. */
  readonly where?: ((call: ReadableCall) => boolean) | undefined;
}

export const resumeAllRules: Readonly<Record<'parallel' | 'where', Rule>> = {
  parallel: wholeNumber(1),
  where: isFunction,
};

/** The outcome of a call that was resumed. A suspended call has a reply, too. */
export type ResumedCall<Output = unknown> =
  | { readonly status: 'resumed'; readonly callId: string; readonly reply: Reply<Output> }
  | { readonly status: 'failed'; readonly callId: string; readonly error: MillraceError };

/** An agent, whose calls know its name. */
export interface NamedResumable<out Output = unknown> extends Resumable<Output> {
  readonly name: string;
}

/** Resumes the calls of an agent that were left, those that seem to run last: their processes may be gone. */
export const resumeLeft$ = <Output>(
  store: unknown,
  agentName: string,
  { parallel = 4, where = isNoFork }: Pick<ResumeAllOptions, 'parallel' | 'where'>,
  resume$: (callId: string) => Observable<Reply<Output>>,
): Observable<ResumedCall<Output>> => {
  if (!isStoreOfCalls(store)) {
    throw misuse('resumeAll$() needs a journal with a store of calls: createCallStore(driver).');
  }
  return calls$(store, { isUnfinished: true }).pipe(
    filter((call) => call.status !== 'unreadable'),
    filter(({ agent, sessionId }) => agent === agentName && sessionId === undefined),
    filter(where),
    // Resumed calls would change the list.
    toArray(),
    mergeMap((calls) => from(calls.toSorted(byAge))),
    mergeMap(({ callId }) => resumed$(callId, resume$), parallel),
  );
};

const isNoFork = ({ forkedFrom }: ReadableCall): boolean => forkedFrom === undefined;

const byAge = (a: ReadableCall, b: ReadableCall): number =>
  Number(a.status === 'running') - Number(b.status === 'running') || a.createdAt - b.createdAt;

const resumed$ = <Output>(
  callId: string,
  resume$: (callId: string) => Observable<Reply<Output>>,
): Observable<ResumedCall<Output>> =>
  resume$(callId).pipe(
    map((reply) => ({ status: 'resumed' as const, callId, reply })),
    catchError((cause: unknown): Observable<ResumedCall<Output>> => {
      const error = toMillraceError(cause);
      // Another process has it.
      return error.code === 'conflict' ? EMPTY : of({ status: 'failed', callId, error });
    }),
  );
