import type { Input, Message, MessageTree, MillraceError } from 'millrace';
import type { CallStore } from 'millrace/journal';
import { canonicalJson, pathTo } from 'millrace/values';
import { concatMap, defer, from, map, type Observable, of, reduce } from 'rxjs';
import { callOf, markOf } from './answers.js';
import { answeredBy, assertSameInput$ } from './brought-results.js';
import { conflictAt } from './guard.js';
import { shownIdOf } from './history.js';
import { recorded$, unlessUnknown } from './past.js';
import type { Placing } from './places.js';
import type { OpenRun, Runs } from './runs.js';

/** A request that may be sent twice. */
export interface RepeatableRequest extends Pick<Placing, 'shown' | 'replaced'> {
  readonly input: Input;
  /** The client's id of the question. */
  readonly questionId?: string | undefined;
  /** The client's id of the run: a protocol has one for each request. */
  readonly runId?: string | undefined;
}

/** The call of a request: a known call to follow, or a new one. */
export interface CallOfRequest {
  readonly callId: string;
  readonly isKnown: boolean;
  /** For a new call, if the store refuses its id: emits if the call that has it was asked the same, and errors otherwise. */
  readonly same$: Observable<unknown>;
}

interface Known {
  readonly sessionId: string;
  readonly tree: MessageTree;
  readonly runs: Pick<Runs, 'get' | 'ofSession'>;
  readonly calls: CallStore;
}

/** How a call is found again. */
interface Identity {
  /** The values that the id of the call is derived from. */
  readonly parts: readonly unknown[];
  /** Later requests find the call by this prefix. */
  readonly mark: string;
  /** Whether the request is a new call once the one before has ended. */
  readonly isAgain: boolean;
  /** Throws if a known call was asked otherwise. */
  readonly same$: (callId: string, run: OpenRun | undefined) => Observable<unknown>;
}

/**
 * Emits the call of a request. Its id is derived from the session and from what identifies the request, so every process
 * computes the same id, and the store refuses a second call with it. A repeated request gets the same call, unless that
 * call failed. Regenerating an answer is a new call once the previous one has ended.
 *
 * A request that brings results is identified by the suspended tool calls that it answers, in every protocol. The first
 * results count: errors with `conflict` if another call has other results for them.
 */
export const callOfRequest$ = (
  request: RepeatableRequest,
  known: Known,
): Observable<CallOfRequest> => {
  const identity = identityOf(request, known);
  if (identity === undefined) return of({ callId: newCallId(), isKnown: false, same$: of(true) });
  return digest$([known.sessionId, ...identity.parts]).pipe(
    concatMap((digest) => attempt$(known, identity, `${identity.mark}${digest.slice(0, 24)}`, 0)),
  );
};

const newCallId = (): string => crypto.randomUUID().replaceAll('-', '').slice(0, 16);

const identityOf = (request: RepeatableRequest, known: Known): Identity | undefined => {
  const { input, questionId, runId, shown, replaced = [] } = request;
  const { tree, runs, sessionId, calls } = known;
  const answered = answeredBy(request, tree, runs.ofSession(sessionId));
  if (answered.length > 0) {
    const failure = conflict(tree, 'This has already been answered. Load the conversation again.');
    return {
      parts: ['results', answered],
      mark: '',
      isAgain: false,
      same$: (callId, run) => assertSameInput$(calls, callId, input, run, failure),
    };
  }
  const mark = questionId === undefined ? '' : markOf(questionId);
  const same$ = (): Observable<unknown> => of(undefined);
  // A different question under the same id, such as an edited one, is a different request.
  if (runId !== undefined) return { parts: ['run', runId, input], mark, isAgain: false, same$ };
  if (questionId === undefined) return undefined;
  const parts = ['question', questionId, shown?.at(-1)?.id ?? null, replaced, input];
  return { parts, mark, isAgain: replaced.length > 0, same$ };
};

const digest$ = (value: unknown): Observable<string> =>
  defer(() => crypto.subtle.digest('SHA-256', new TextEncoder().encode(canonicalJson(value)))).pipe(
    map((bytes) =>
      [...new Uint8Array(bytes)].map((it) => it.toString(16).padStart(2, '0')).join(''),
    ),
  );

type Status = 'unknown' | 'running' | 'failed' | 'ended';
const attempt$ = (
  known: Known,
  identity: Identity,
  base: string,
  attempt: number,
): Observable<CallOfRequest> => {
  const { runs, calls, tree } = known;
  const callId = attempt === 0 ? base : `${base}-${attempt}`;
  const run = runs.get(callId);
  const same$ = identity.same$(callId, run);
  const follow$ = same$.pipe(map(() => ({ callId, isKnown: true, same$ })));
  if (run !== undefined) return follow$;
  const next$ = defer(() => attempt$(known, identity, base, attempt + 1));
  return statusOf$(calls, callId).pipe(
    concatMap((status): Observable<CallOfRequest> => {
      const stored = tree.entries.filter(({ message }) => callOf(message.id) === callId);
      if (status === 'unknown' && stored.length === 0) return of({ callId, isKnown: false, same$ });
      if (status === 'running') return follow$;
      const isAnswered = stored.some(({ message }) => isAnswer(message));
      if (identity.isAgain || status === 'failed' || (status === 'unknown' && !isAnswered))
        return next$;
      if (status === 'ended') return follow$;
      throw conflict(tree, 'This message was answered some time ago. Load the conversation again.');
    }),
  );
};

const isAnswer = ({ role }: Message): boolean => role === 'assistant';

/** The status of a call, in any process. */
export const statusOf$ = (calls: CallStore, callId: string): Observable<Status> =>
  recorded$(calls, callId).pipe(
    reduce<{ type: string; callId: string }, Status>(
      (_, event) =>
        event.callId !== callId || (event.type !== 'error' && event.type !== 'postCall')
          ? 'running'
          : event.type === 'error'
            ? 'failed'
            : 'ended',
      'running',
    ),
    unlessUnknown(() => from<Status[]>(['unknown'])),
  );

const conflict = (tree: MessageTree, userMessage: string): MillraceError =>
  conflictAt(userMessage, shownIdOf(pathTo(tree)) ?? null, userMessage);
