import type { Input, Message, MessageTree, MillraceError } from 'millrace';
import type { CallStore } from 'millrace/journal';
import { canonicalJson, pathTo } from 'millrace/values';
import { concatMap, defer, from, map, type Observable, of, reduce } from 'rxjs';
import { callOf, markOf } from './answers.js';
import { conflictAt } from './guard.js';
import { shownIdOf } from './history.js';
import { recorded$, unlessUnknown } from './past.js';
import type { Placing } from './places.js';
import type { Runs } from './runs.js';

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
}

interface Known {
  readonly sessionId: string;
  readonly tree: MessageTree;
  readonly runs: Pick<Runs, 'get' | 'ofSession'>;
  readonly calls: CallStore;
}

/**
 * Emits the call of a request. Its id is derived from the session and from what identifies the request, so every process
 * computes the same id, and the store refuses a second call with it. A repeated request gets the same call, unless that
 * call failed. Regenerating an answer is a new call once the previous one has ended.
 */
export const callOfRequest$ = (
  request: RepeatableRequest,
  known: Known,
): Observable<CallOfRequest> => {
  const { questionId } = request;
  // Later requests find the call by this prefix.
  const mark = questionId === undefined ? '' : markOf(questionId);
  const parts = identityOf(request);
  if (parts === undefined) return of({ callId: newCallId(), isKnown: false });
  // A different question under the same id, such as an edited one, is a different request.
  return digest$([known.sessionId, ...parts, request.input]).pipe(
    concatMap((digest) => {
      const isAgain = request.runId === undefined && (request.replaced ?? []).length > 0;
      return attempt$(known, `${mark}${digest.slice(0, 24)}`, isAgain, 0);
    }),
  );
};

const newCallId = (): string => crypto.randomUUID().replaceAll('-', '').slice(0, 16);

const identityOf = ({
  questionId,
  runId,
  shown,
  replaced = [],
}: RepeatableRequest): readonly unknown[] | undefined => {
  if (runId !== undefined) return ['run', runId];
  if (questionId === undefined) return undefined;
  return ['question', questionId, shown?.at(-1)?.id ?? null, replaced];
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
  base: string,
  isAgain: boolean,
  attempt: number,
): Observable<CallOfRequest> => {
  const { runs, calls, tree } = known;
  const callId = attempt === 0 ? base : `${base}-${attempt}`;
  const follow = { callId, isKnown: true };
  if (runs.get(callId) !== undefined) return of(follow);
  const next$ = defer(() => attempt$(known, base, isAgain, attempt + 1));
  return statusOf$(calls, callId).pipe(
    concatMap((status): Observable<CallOfRequest> => {
      const stored = tree.entries.filter(({ message }) => callOf(message.id) === callId);
      if (status === 'unknown' && stored.length === 0) return of({ callId, isKnown: false });
      if (status === 'running') return of(follow);
      const isAnswered = stored.some(({ message }) => isAnswer(message));
      if (isAgain || status === 'failed' || (status === 'unknown' && !isAnswered)) return next$;
      if (status === 'ended') return of(follow);
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
