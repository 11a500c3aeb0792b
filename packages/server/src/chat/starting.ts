import {
  type AgentEvent,
  type CallOptions,
  type ContentBlock,
  type Input,
  type MillraceError,
  suspensionsIn,
} from 'millrace';
import type { CallStore } from 'millrace/journal';
import type { KeptSession } from 'millrace/sessions';
import { defined } from 'millrace/values';
import {
  AsyncSubject,
  catchError,
  concatMap,
  defer,
  EMPTY,
  endWith,
  filter,
  finalize,
  ignoreElements,
  map,
  merge,
  type Observable,
  of,
  take,
  takeUntil,
  tap,
} from 'rxjs';
import { assertForClient, heldBack, resultsIn } from '../inbound.js';
import type { BackgroundWork } from './background-work.js';
import type { Titles } from './collection.js';
import { asError, refused } from './guard.js';
import type { OpenSessions } from './open-sessions.js';
import { createPlaces, type Placed, type PlacesOptions, type Placing, tree$ } from './places.js';
import { contentOf, type OpenRun, type Runs } from './runs.js';
import { callOfRequest$, type RepeatableRequest, statusOf$ } from './same-request.js';
import type { InTurn } from './session-turns.js';

/** A request of a client for a call. */
export interface Asked extends Placing, RepeatableRequest, Pick<CallOptions, 'request'> {
  readonly metadata: Readonly<Record<string, string>>;
  /** The call continues when its readers leave, regardless of `onDisconnect`. */
  readonly continues?: boolean;
  /** The results that it brings are the program's, which has checked what its client may decide. Default: the client's. */
  readonly byProgram?: boolean;
}

interface StartingOptions extends PlacesOptions {
  readonly onSuspended?: 'cancel' | 'refuse' | undefined;
  readonly calls: CallStore;
  readonly runs: Runs;
  readonly sessions: Pick<OpenSessions, 'opened$' | 'withCurrent$' | 'forget' | 'lookAgain'>;
  readonly titles: Titles;
  readonly background: BackgroundWork;
  readonly inTurn$: InTurn;
}

/** A call that starts. */
interface Start {
  readonly request: Asked;
  readonly placed: Placed;
  readonly callId: string;
  /** Frees the slot of the call. */
  readonly free: () => void;
}

/**
 * Returns the function that starts the call of a request, and emits its id once it runs or waits in the queue of its session. A
 * request that comes again gets its earlier call.
 */
export const createStarting = (options: StartingOptions) => {
  const { runs, calls, sessions, inTurn$ } = options;
  const places = createPlaces(runs, options);
  const new$ = (
    session: KeptSession,
    start: Omit<Start, 'placed'>,
    same$: Observable<unknown>,
  ): Observable<string> =>
    places.place$(session, start.request).pipe(
      concatMap((placed) => {
        const { input, byProgram = false } = start.request;
        const settles = contentOf(input) !== undefined && options.onSuspended !== 'refuse';
        assertAwaited(session, start.request, placed, runs);
        if (!byProgram) assertForClient(placed.path, resultsIn(input), settles);
        endAsked(session, start.request, placed, options);
        for (const replaced of placed.replacedRuns) runs.stop(session.id, replaced);
        return call$(session, { ...start, placed }, options);
      }),
      // If the store refuses the id, the call has started in another process. One that was refused here has failed.
      catchError((error: unknown) => {
        if (asError(error).code !== 'conflict') throw error;
        return statusOf$(calls, start.callId).pipe(
          concatMap((status) => {
            if (status === 'unknown' || status === 'failed') throw error;
            return same$;
          }),
          map(() => start.callId),
        );
      }),
    );
  return (sessionId: string, request: Asked, free: () => void): Observable<string> =>
    inTurn$(sessionId, () =>
      sessions.withCurrent$(sessions.opened$(sessionId), (session) =>
        tree$(session).pipe(
          concatMap((tree) => callOfRequest$(request, { sessionId, tree, runs, calls })),
          concatMap(({ callId, isKnown, same$ }) =>
            isKnown ? of(callId) : new$(session, { request, callId, free }, same$),
          ),
        ),
      ),
    );
};

/** A question has cancelled the tool calls before it. While its call runs, their error results are not stored yet. */
const assertAwaited = (
  { id }: KeptSession,
  { input }: Asked,
  { after, path }: Placed,
  runs: Runs,
): void => {
  const brought = resultsIn(input);
  const isWaiting = suspensionsIn(path).some(({ toolCall }) => brought.has(toolCall.id));
  const places = [after, path.at(-1)?.id];
  const isCancelled = isWaiting
    ? runs.ofSession(id).some((run) => run.question.length > 0 && places.includes(run.after))
    : path.some(
        (message) =>
          message.role === 'tool' &&
          message.content.some(({ cancelled = [] }) => cancelled.some((it) => brought.has(it))),
      );
  if (isCancelled) {
    throw heldBack('This is no longer waiting for an answer.');
  }
};

/**
 * A call that waits for approval ends if its user writes something else: the new one would wait for it. Results for it come too early:
 * its tool calls are suspended when all of them have ended.
 */
const endAsked = (
  session: KeptSession,
  { input }: Asked,
  { after }: Placed,
  { runs, onSuspended }: StartingOptions,
): void => {
  const isQuestion = contentOf(input) !== undefined;
  if (!isQuestion && resultsIn(input).size === 0) return;
  const waiting = runs
    .ofSession(session.id)
    .filter(({ callId, asked }) => asked.size > 0 && (after === undefined || after === callId));
  if (waiting.length > 0 && (!isQuestion || onSuspended === 'refuse')) {
    throw refused(409, 'The conversation waits for an approval. Decide on it first.');
  }
  for (const { callId } of waiting) session.interrupt(undefined, callId);
};

const call$ = (session: KeptSession, start: Start, options: StartingOptions): Observable<string> =>
  defer(() => {
    const { callId, request, placed } = start;
    const { runs, titles, background } = options;
    const { given, content, input } = inputOf(request, placed);
    const isNew = session.version === undefined;
    titles.begun(session, content);
    const { after, replaces } = placed;
    const run = runs.begin(callId, session, { input: given, after, replaces });
    if (isNew) background.run(run.over$.pipe(concatMap(() => titles.answered$(session))));
    // From here on, the call counts as a run.
    start.free();
    if (request.continues === true) runs.join(session.id, callId);
    const started = createStarted(callId);
    background.run(events$(run, input, start, started, options));
    const queued$ = session.queue.calls$.pipe(
      filter((queued) => queued.some((it) => it.callId === callId)),
      tap(started.now),
      map(() => callId),
      takeUntil(run.over$),
    );
    return merge(started.id$, queued$).pipe(take(1));
  });

/** The input of a call, and its question: `given` is what the client has sent, or the question that it asks again. */
const inputOf = (
  { input: sent }: Asked,
  { question, unsent }: Placed,
): {
  readonly given: Input;
  readonly content: readonly ContentBlock[] | undefined;
  readonly input: Input;
} => {
  // To regenerate an answer, a client may name the question without its content.
  const given = sent === '' && question !== undefined ? question : sent;
  const content = contentOf(given);
  const input: Input =
    unsent.length === 0 || content === undefined ? given : [...unsent, { role: 'user', content }];
  return { given, content, input };
};

/** Reports to the client that asked whether its call has started. */
const createStarted = (callId: string) => {
  const id$ = new AsyncSubject<string>();
  let hasStarted = false;
  let failure: MillraceError | undefined;
  return {
    id$,
    now: (): void => {
      hasStarted = true;
      id$.next(callId);
      id$.complete();
    },
    /** Returns whether the client gets the error: not once the call has started. */
    fail: (error: MillraceError): boolean => {
      if (!hasStarted) failure = error;
      return !hasStarted;
    },
    /** Called once the call is no longer a run: the client may be answered by another one. */
    end: (): void => {
      if (failure === undefined) id$.complete();
      else id$.error(failure);
    },
  };
};

const events$ = (
  run: OpenRun,
  input: Input,
  { callId, request: { request, metadata }, placed: { after, path, replaces } }: Start,
  started: ReturnType<typeof createStarted>,
  options: StartingOptions,
): Observable<AgentEvent> => {
  const settles = resultsIn(input).size > 0 || suspensionsIn(path).length > 0;
  return run.session
    .stream$(input, {
      ...defined({ request, after, replaces, onSuspended: options.onSuspended }),
      callId,
      onBusy: 'queue',
      metadata,
    })
    .pipe(
      tap((event) => {
        // If it is refused before, there is nothing to follow.
        if (event.type !== 'error' && (!settles || hasBegun(event))) started.now();
      }),
      catchError((error: unknown) => {
        const failure = asError(error);
        run.failure = failure;
        // The call is resumed once the store works again, since its record is unfinished.
        if (failure.code === 'store') options.sessions.lookAgain();
        if (failure.code === 'conflict') reopen(run, options);
        return started.fail(failure) ? EMPTY : options.background.reported$(error, callId);
      }),
      options.runs.tracked(run),
      finalize(started.end),
    );
};

/**
 * Whether a call has claimed what it settles: it does before anything else. One that waits for its turn among the calls of an agent
 * counts, too: its client, and those who would stop it, must not wait as long. If it is refused then, its stream ends with the error.
 */
const hasBegun = ({ type, iteration, parentId }: AgentEvent): boolean =>
  iteration > 0 || parentId !== undefined || type === 'postCall' || type === 'queued';

/** Opens the session again after another server has saved it, so the call is added to that version. */
const reopen = (
  { session: { id }, over$ }: OpenRun,
  { sessions, background, inTurn$ }: StartingOptions,
): void => {
  sessions.forget(id);
  background.runOwn(
    over$.pipe(
      ignoreElements(),
      endWith(undefined),
      concatMap(() => inTurn$(id, () => sessions.opened$(id))),
    ),
  );
};
