import {
  catchError,
  combineLatest,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  first,
  ignoreElements,
  map,
  merge,
  NEVER,
  noop,
  type Observable,
  of,
  take,
  tap,
  throwError,
  scan,
  takeWhile,
} from 'rxjs';
import { outcome } from './call/answer.js';
import type { Call } from './call/call.js';
import { type CallOptions, splitOptions } from './call-options.js';
import type { CallContext, OpenedJournal, CallSteps } from './call-context.js';
import { createContext } from './create-context.js';
import { discard } from './discard.js';
import { MillraceError, toMillraceError } from './errors.js';
import type { Listener } from './events.js';
import { frozen } from './frozen.js';
import { type Input, readInput } from './input.js';
import type { Interceptor } from './interceptor.js';
import type { Interruption, Interrupt } from './interruption.js';
import {
  beginning,
  type CallRecord,
  callRecord,
  callStep,
  goingOn,
} from './journal/call-record.js';
import { isHalt } from './journal/halt.js';
import { unwritten } from './journal/journal.js';
import { seatStep, seatForm, type SeatRecord } from './journal/seat-step.js';
import { type Answer, answerThrough, type Layer, layersOf } from './layer.js';
import { type Memory, noMemory } from './memory.js';
import type { Message } from './message.js';
import type { Model } from './model.js';
import type { Reply } from './reply.js';
import type { Validator } from './schema.js';
import type { Seat, SeatedCall } from './seats.js';
import type { SessionRecord } from './sessions/session-records.js';
import { abortedError, interrupts$, stopBy } from './stop-by.js';
import type { ToolkitCell } from './tools/live-toolkit.js';
import type { View } from './view.js';
import { noteWords } from './words-before.js';

/** What a call is set up from: its agent, what its caller says, and its place in a session. */
export interface CallSetup {
  readonly agentName: string;
  readonly interceptors: readonly Interceptor[];
  /** The layers of the house. */
  readonly native: readonly Layer[];
  /** The layers of the agent and of the call. */
  readonly use: readonly Layer[];
  /** The innermost answer: `runLoop`, or what takes its place. */
  readonly answer: (context: CallContext) => Answer;
  /** Hears every call of the agent. */
  readonly listener: Listener;
  readonly input: Input;
  readonly model: Model | undefined;
  readonly toolkit: ToolkitCell;
  /** The names of tools that are shown whatever is selected. */
  readonly pinned: readonly string[];
  readonly output: Validator | undefined;
  /** Whether the call itself says what the answer must be, and not only its agent. */
  readonly ownOutput: boolean;
  readonly options: CallOptions;
  /** What the caller has said, without the defaults. */
  readonly given: CallOptions;
  /** Where the call stands in its session; a call without a session remembers nothing. */
  readonly session:
    { readonly seat: Seat; readonly memory: Memory; readonly record: SessionRecord } | undefined;
  /** The call's own journal. Default: that of the call above. */
  readonly opened?: OpenedJournal;
  /** What a resumed call began with. */
  readonly begun?: CallRecord;
}

/**
 * Makes one call: emits what the caller wants to see of it and of the calls below it, and completes behind
 * `postCall`, or errors behind `error`. Cold: each subscription is a call of its own, and unsubscribing
 * ends it at once.
 */
export const call$ = <Seen>(setup: CallSetup, view: View<Seen>): Observable<Seen> =>
  defer(() => {
    const { agentName, options, session, listener, interceptors, opened } = setup;
    const context = createContext({
      ...{ agentName, options, listener, interceptors, opened },
      layers: [...setup.native, ...setup.use],
      isLayered: setup.use.length > 0,
      sessionId: session?.seat.sessionId,
      record: session?.record,
      modelName: setup.model?.name,
      forks: setup.begun?.forks,
    });
    if (context.isLate) return NEVER;
    const { call, events$, reply$, deliver, hooks, interruption, above } = context;
    const letGo = context.holdAbove();
    let failure: MillraceError | undefined;
    const fail = (error: MillraceError): void => {
      if (!hooks.isSettled()) {
        failure = error;
        hooks.report(hooks.iteration(), { type: 'error', error });
      }
      end();
    };
    // Also for those who have joined the call; a second end is nothing.
    const end = (): void =>
      deliver(() => {
        for (const seen$ of [events$, reply$]) {
          if (failure === undefined) seen$.complete();
          else seen$.error(failure);
        }
      });
    const descending$ = above?.signal$.pipe(
      tap((interrupt) => interruption.trigger(interrupt)),
      ignoreElements(),
    );
    const interrupted$ =
      options.interruptOn && interrupts$(options.interruptOn, interruption, hooks);
    const interrupting = [descending$, interrupted$].filter((source$) => source$ !== undefined);
    const replied$ = perform$(setup, context);
    return merge(
      view(context),
      // The reply ends the wait for an interrupt too.
      (interrupting.length === 0 ? replied$ : merge(...interrupting, replied$)).pipe(
        take(1),
        stopBy(options, context),
        tap({ complete: end }),
        // Deferred, so that all is torn down before anybody hears of the error.
        catchError((cause: unknown) =>
          defer(() => {
            const error = toMillraceError(cause);
            if (isHalt(error)) context.reportHalt(error);
            fail(error);
            return EMPTY;
          }),
        ),
        ignoreElements(),
      ),
    ).pipe(
      finalize(() => {
        if (hooks.isSettled()) end();
        else fail(abortedError(call));
        // Outside of the delivery: what the next call does would else wait for it.
        deliver(() => session?.seat.wake(call), true);
        letGo();
      }),
    );
  });

/** Runs a call, from its place in the session to its last event, and emits the reply. */
const perform$ = (setup: CallSetup, context: CallContext): Observable<Reply> =>
  defer(() => {
    const { call, journal, interruption, steering, steps } = context;
    const { session, opened } = setup;
    const input = setup.begun?.input ?? readInput(setup.input, call);
    const begin = (place: Omit<Place, 'input'>): Observable<Reply> =>
      begin$(setup, context, { ...place, input });
    const noted$ = journal === unwritten ? undefined : noted(setup, context, input);
    if (noted$ !== undefined && opened !== undefined && journal.hasEnded === true) {
      return noted$.pipe(concatMap(() => ended$(context)));
    }
    if (session === undefined || steering === undefined) {
      const bare = { memory: noMemory };
      return noted$ === undefined ? begin(bare) : noted$.pipe(concatMap(() => begin(bare)));
    }
    const { seat, memory, record } = session;
    const end = (): void => {
      steering.close();
      seat.leave(call);
    };
    const goesOn = steps.isWritten('open') && !steps.isWritten(seatStep);
    const seated$ = placed$(seat, { ...context, input, steering }, setup.options, goesOn);
    // The place is taken first: calls run in the order in which they were made.
    const kept$ =
      noted$ === undefined
        ? seated$
        : combineLatest([seated$, arrived$(noted$, opened)]).pipe(
            concatMap(([seated]) => placeWritten$(seated, steps)),
          );
    return kept$.pipe(
      first(({ isOver }) => isOver),
      concatMap(({ as, message }) => {
        if (as === 'interrupted') {
          interruption.trigger(message === undefined ? {} : { message });
          // It has not been a part of the conversation.
          return begin({ memory: noMemory, end });
        }
        record.begin(journal === unwritten ? undefined : call.callId);
        return begin({ memory, end, isSuperseded: as === 'superseded' });
      }),
      finalize(end),
    );
  });

/** Whoever comes behind a call in its session may begin: it has its place, or waits for it. */
const arrived$ = <T>(noted$: Observable<T>, opened: OpenedJournal | undefined): Observable<T> =>
  defer(() => {
    opened?.hasArrived?.();
    return noted$;
  });

/** Writes down what a call begins with, and looks what came of it before. A call below another is begun by that one's. */
const noted = (
  { opened, given }: CallSetup,
  { call, steps: { begin, recall$ } }: CallContext,
  input: readonly Message[],
): Observable<unknown> => {
  if (opened === undefined) return concat(recall$, of(undefined));
  const form = opened.resumes ? goingOn : beginning(call.callId);
  const run = () => of(callRecord(call, input, given));
  const record$ = begin({ kind: 'call', id: callStep, input, run, form });
  return record$.pipe(concatMap((begun) => concat(recall$, of(begun))));
};

/** Gives the reply of a call that has ended. Nothing of it is done again, nor written, nor counted. */
const ended$ = ({ steps: { begin }, reply$, hooks }: CallContext): Observable<Reply> =>
  begin<Reply>({
    kind: 'reply',
    id: 'reply',
    input: undefined,
    run: () => throwError(() => noReply()),
  }).pipe(
    tap((reply) => {
      reply$.next(reply);
      hooks.report(reply.iterations, { type: 'postCall', reply });
    }),
  );

const noReply = (): MillraceError =>
  new MillraceError('invalidState', 'The call has ended, and its journal has no reply of it.');

/** What a call brings from its session. */
interface Place {
  readonly input: readonly Message[];
  readonly memory: Memory;
  /** Gives the place in the session on. */
  readonly end?: () => void;
  /** A later call has made it void while it waited: it is only to be remembered. */
  readonly isSuperseded?: boolean;
}

const begin$ = (setup: CallSetup, context: CallContext, place: Place): Observable<Reply> => {
  const { input, memory, end = noop, isSuperseded = false } = place;
  const { session, opened } = setup;
  const { hooks, interruption, journal, scheduler, steps } = context;
  hooks.report(0, { type: 'preCall', input });
  if (memory !== noMemory && opened?.resumes !== true) {
    session?.record.takeUntold().forEach((change) => hooks.report(0, change));
  }
  const layers = isSuperseded
    ? layersOf([...context.layers, superseding(interruption)], [])
    : context.layers;
  const house = new Set(setup.native);
  const answer = answerThrough(layers, context, setup.answer(context), house);
  const made$ = answer(callOf(setup, input, memory, scheduler.now())).pipe(
    take(1),
    map((reply) => completed(frozen(reply), setup, context, end)),
  );
  return journal === unwritten ? made$ : merge(steps.interrupt$, made$);
};

/** Ends the call: gives its place in the session on, and reports the last event, `postCall`. */
const completed = (
  reply: Reply,
  { session }: CallSetup,
  { call, hooks, reply$, local }: CallContext,
  end: () => void,
): Reply => {
  const { run, isRemembered = false } = local(outcome);
  if (run !== undefined) noteWords(reply, run, call);
  session?.record.end(call.callId, reply, isRemembered);
  end();
  reply$.next(reply);
  if (run !== undefined && reply.id !== run.answer.id) {
    discard({ hooks }, run.iteration, run.answer, 'stopped');
  }
  hooks.report(run?.iteration ?? reply.iterations, { type: 'postCall', reply });
  return reply;
};

/** A later call has made this one void while it waited: its input is guarded and remembered, and nothing else happens. */
const superseding = ({ trigger }: Pick<Interruption, 'trigger'>): Layer => ({
  name: 'superseded',
  priority: 56,
  call: () => (next) => (call) => {
    trigger({});
    return next({ ...call, status: 'interrupted' });
  },
});

const callOf = (
  { model, toolkit, pinned, output, options }: CallSetup,
  input: readonly Message[],
  memory: Memory,
  createdAt: number,
): Call => ({
  status: 'prepared',
  input,
  model,
  toolkit,
  pinned,
  hidden: [],
  options: splitOptions(options).prepared,
  onUncertain: options.onUncertain ?? 'ask',
  output,
  memory,
  history: [],
  late: [],
  instructions: undefined,
  createdAt,
  recalled: [],
  recalledPlacement: 'beforeHistory',
  sources: [],
  retrievals: 0,
  contextPlacement: 'system',
  question: undefined,
  notes: {},
  spent: {},
});

/** What has become of a call that waits for its place in a session. */
interface Placed extends SeatRecord {
  /** It waits no longer. */
  readonly isOver: boolean;
}

/** Takes the place of a call in its session, and tells what becomes of it meanwhile. One that goes on has had it before: it waits however long, and is cut only where it went on. */
const placed$ = (
  seat: Seat,
  call: SeatedCall,
  { onBusy = 'reject', maxQueue = 16 }: Pick<CallOptions, 'onBusy' | 'maxQueue'>,
  goesOn: boolean,
): Observable<Placed> => {
  const { interruption } = call;
  if (goesOn) {
    return seat.take$(call, 'queue', Infinity).pipe(
      tap((seated) => {
        if (seated === 'superseded') interruption.trigger({});
      }),
      map((seated): Placed => ({ as: 'seated', isOver: seated === 'seated' })),
      takeWhile(({ isOver }) => !isOver, true),
    );
  }
  return merge(seat.take$(call, onBusy, maxQueue), interruption.signal$).pipe(
    scan((before: Placed, now): Placed => {
      if (now === 'superseded') return { as: now, isOver: false };
      if (now === 'seated') return { as: before.as, isOver: true };
      return { as: 'interrupted', isOver: true, ...messageOf(now) };
    }, waiting),
    takeWhile(({ isOver }) => !isOver, true),
  );
};

const waiting: Placed = { as: 'seated', isOver: false };

const messageOf = ({ message }: Interrupt): Pick<Placed, 'message'> =>
  message === undefined ? {} : { message };

/** Writes down what became of a call, where it is more than that it got its place: it is the same when the call goes on. */
const placeWritten$ = (placed: Placed, { begin, mayBeWritten }: CallSteps): Observable<Placed> => {
  const { isOver, ...now } = placed;
  if (now.as === 'seated' && !mayBeWritten(seatStep)) return of(placed);
  return begin({
    kind: 'seat',
    id: seatStep,
    input: undefined,
    run: () => of(now),
    form: seatForm,
  }).pipe(
    // Who has left does not have the place, whatever was written before.
    map((then) => (now.as === 'interrupted' ? placed : { ...then, isOver })),
  );
};
