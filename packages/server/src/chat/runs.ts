import {
  type AgentEvent,
  type ContentBlock,
  type Input,
  isEvent,
  type Message,
  type MillraceError,
  textBlock,
} from 'millrace';
import { isRecord } from 'millrace/values';
import type { KeptSession } from 'millrace/sessions';
import {
  AsyncSubject,
  finalize,
  type MonoTypeOperatorFunction,
  noop,
  type Observable,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';

import { once } from './guard.js';
import { createTail, type Tail } from './tail.js';

/** The reaction when the last reader of a call leaves: it continues, is interrupted, or is aborted and removed. */
export type OnDisconnect = 'continue' | 'interrupt' | 'abort';

/** A call that has not ended, or is not saved yet. */
export interface OpenRun {
  readonly callId: string;
  readonly session: KeptSession;
  /** Its input; `undefined` if it was resumed: its record has it. */
  readonly given: Input | undefined;
  /** The id of the message or the call that it continues after. Default: the head. */
  after: string | null | undefined;
  replaces: string | undefined;
  /** Empty until it is known, and for results of tools. */
  question: readonly Message[];
  /** Its latest events. */
  readonly tail: Tail;
  /** Aborts it. */
  readonly stop$: Subject<void>;
  /** Emits once it has ended, and its session is saved. */
  readonly over$: AsyncSubject<void>;
  /** The error of the save after its last event. */
  failure: MillraceError | undefined;
  hasEnded: boolean;
  /** The tool calls that wait for approval. */
  readonly asked: Set<string>;
  readers: number;
}

/** The input of a call, and its place. */
interface BegunRun extends Partial<Pick<OpenRun, 'after' | 'replaces'>> {
  readonly input?: Input;
}

/** The open calls of all conversations, and their readers. */
export interface Runs {
  readonly size: number;
  /** Emits the session of a call that begins, or is over. Hot. */
  readonly changed$: Observable<string>;
  get(callId: string): OpenRun | undefined;
  ofSession(sessionId: string): readonly OpenRun[];
  all(): readonly OpenRun[];
  begin(callId: string, session: KeptSession, given?: BegunRun, stop$?: Subject<void>): OpenRun;
  /** Follows the events of a call until it is over. */
  tracked(run: OpenRun): MonoTypeOperatorFunction<AgentEvent>;
  see(run: OpenRun, event: AgentEvent): void;
  end(run: OpenRun): void;
  /** Counts a reader of a call of this session; returns the function to call once it has left, or has read to the end. */
  join(sessionId: string, callId: string): (how: 'ended' | 'cancelled') => void;
  /** Interrupts the calls of a session, or only this one; returns their number. */
  stop(sessionId: string, only?: string): number;
}

/** The question of a call that waits for its turn. */
const questionOf = (callId: string, input: Input): readonly Message[] => {
  const content = contentOf(input);
  return content === undefined ? [] : [{ id: `${callId}/input/0`, role: 'user', content }];
};

/** The content of an input that is a question. */
export const contentOf = (input: Input): readonly ContentBlock[] | undefined => {
  const content = typeof input === 'string' ? [textBlock(input)] : input;
  return input !== '' && Array.isArray(content) && content.every(isContent) ? content : undefined;
};

const isContent = (part: unknown): part is ContentBlock =>
  isRecord(part) && 'type' in part && part['type'] !== 'tool_result' && !('role' in part);

export const createRuns = (onDisconnect: OnDisconnect, onAbort: (run: OpenRun) => void): Runs => {
  const runs = new Map<string, OpenRun>();
  const changed$ = new Subject<string>();
  const all = (): readonly OpenRun[] => [...runs.values()];
  const ofSession = (sessionId: string): readonly OpenRun[] =>
    all().filter(({ session }) => session.id === sessionId);
  const end = (run: OpenRun): void => {
    run.hasEnded = true;
    run.tail.end();
    runs.delete(run.callId);
    run.over$.next();
    run.over$.complete();
    changed$.next(run.session.id);
  };
  return {
    get size() {
      return runs.size;
    },
    changed$: changed$.asObservable(),
    get: (callId) => runs.get(callId),
    ofSession,
    all,
    see,
    end,
    begin: (callId, session, given = {}, stop$ = new Subject()) => {
      const run = newRun(callId, session, given, stop$);
      runs.set(callId, run);
      changed$.next(session.id);
      return run;
    },
    tracked: (run) => (event$) =>
      event$.pipe(
        takeUntil(run.stop$),
        tap((event) => {
          see(run, event);
        }),
        finalize(() => {
          end(run);
        }),
      ),
    join: (sessionId, callId) => {
      const run = runs.get(callId);
      if (run?.session.id !== sessionId) return noop;
      run.readers += 1;
      return once((how) => {
        run.readers -= 1;
        if (how === 'cancelled' && run.readers === 0) leftAlone(run, onDisconnect, onAbort);
      });
    },
    stop: (sessionId, only) =>
      // Stop waiting calls first; otherwise the next one would start.
      ofSession(sessionId)
        .toReversed()
        .filter(({ callId }) => only === undefined || callId === only)
        .filter(({ session, callId }) => session.interrupt(undefined, callId)).length,
  };
};

const newRun = (
  callId: string,
  session: KeptSession,
  { input, after, replaces }: BegunRun,
  stop$: Subject<void>,
): OpenRun => ({
  callId,
  session,
  given: input,
  after,
  replaces,
  question: questionOf(callId, input ?? ''),
  tail: createTail(),
  stop$,
  over$: new AsyncSubject(),
  failure: undefined,
  hasEnded: false,
  asked: new Set(),
  readers: 0,
});

const see = (run: OpenRun, event: AgentEvent): void => {
  run.tail.push(event);
  if (isEvent(event, 'approvalRequested')) run.asked.add(`${event.callId}/${event.toolCall.id}`);
  if (isEvent(event, 'approvalDecided')) run.asked.delete(`${event.callId}/${event.toolCall.id}`);
  if (event.callId !== run.callId) return;
  if (isEvent(event, 'preCall')) run.question = event.input.filter(({ role }) => role === 'user');
  if (isEvent(event, 'postCall', 'error')) run.hasEnded = true;
};

/** Ends a call whose last reader has left, if `onDisconnect` asks for it. */
const leftAlone = (
  run: OpenRun,
  onDisconnect: OnDisconnect,
  onAbort: (run: OpenRun) => void,
): void => {
  // A client that was asked for approval comes back with its decision.
  if (run.hasEnded || run.asked.size > 0) return;
  if (onDisconnect === 'interrupt') {
    run.session.interrupt('The client disconnected.', run.callId);
  } else if (onDisconnect === 'abort') {
    onAbort(run);
    run.stop$.next();
  }
};
