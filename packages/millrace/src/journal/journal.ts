import {
  defaultIfEmpty,
  defer,
  filter,
  lastValueFrom,
  type Observable,
  of,
  take,
  takeUntil,
  tap,
  throwError,
  throwIfEmpty,
  concatMap,
} from 'rxjs';
import { continueWith } from '../flow/eventual.js';
import { splitInput } from '../call/layers/conversation.js';
import { numbering } from '../seams/hooks.js';
import { conversation } from '../memories/conversation.js';
import type { CallInfo, Reply } from '../values/reply.js';
import {
  type CallOptions,
  checkCallOptions,
  givenOptions,
  plainOptionsIn,
  withDefaults,
} from '../call/call-options.js';
import { MillraceError, misuse } from '../values/errors.js';
import type { AgentEvent } from '../events.js';
import { givenHistory, type Input, readHistory, voices } from '../seams/input.js';
import { defined, isRecord } from '../values/json.js';
import type { Answer, Layer, Context, Use } from '../seams/layer.js';
import { resuming, trusted } from '../seams/through.js';
import { noMemory } from '../values/memory.js';
import type { Message } from '../values/message.js';
import { checkOptions, having, isFunction, oneOf, type Rule } from '../values/options.js';
import { keySeed, toolScopeOf } from '../seams/tool-context.js';
import { recorded } from '../memories/recorded.js';
import { cell, type Perform } from '../step.js';
import { reach } from '../memories/changed-agents.js';
import { suspendBelow, suspensionsIn } from '../memories/suspend.js';
import type { ToolContext } from '../tools/types.js';
import {
  type CallRecord,
  type Fork,
  assertGiven,
  beginning,
  alreadyBegun,
  callRecord,
  callStep,
  resumption,
  readCallRecord,
} from './call-record.js';
import { continuedBelow, reportingAbove, withoutSuspended } from './below.js';
import { createDraining, type Drainable, type RunningCalls } from './draining.js';
import type { JournalStore, OpenJournal } from './call-store-driver.js';
import {
  type NamedResumable,
  type Resumable,
  type ResumeAllOptions,
  type ResumeOptions,
  resumeAllRules,
  type ResumedCall,
  resumeLeft$,
} from './resume-all.js';
import { redactedStore } from './redacted-journal.js';
import type { CallLog, CallSteps } from './recording.js';
import { callSteps, createReplayFilter, createRunning, earlierCalls } from './recording.js';
import { earlierToolCalls } from '../phases/run-tool.js';
import { interruptLayer, isInterruptible } from '../seams/steps.js';
import { layerPlaces } from '../seams/layer-places.js';
import { callProgress } from '../seams/progress.js';

export interface JournalOptions extends Pick<ResumeOptions, 'onUncertain'> {
  /**
   * Returns the string to record instead, for each string of a step or an event, names of fields included. Ids and names of
   * tools must stay the same. The call keeps its own values; a resumed call reads the record. Deltas and the progress of tools are
   * recorded without their text, because a part of a secret is not found. Not covered: memories and sessions. Default: records
   * everything as it is.
   */
  readonly redact?: ((text: string) => string) | undefined;
}

const resumeRules = { onUncertain: oneOf('ask', 'report', 'rerun') };

export const journalRules: Readonly<Record<keyof JournalOptions, Rule>> = {
  ...resumeRules,
  redact: isFunction,
};

declare module '../events.js' {
  interface Events {
    readonly stepReplayed: {
      /** The position of the replayed step in its call, such as `3/0`. */
      readonly step: string;
    };
  }
}

export interface Journal<out Store = JournalStore> extends Layer, Drainable {
  readonly store: Store;
  /**
   * Resumes a call of an agent or a session: replays recorded steps, which only emit `stepReplayed`, and continues the loop.
   * Waits for the lease of a process that died. Emits the reply and completes, also for a call that had ended. Pass options that JSON cannot express again. Errors with
   * `invalidResume` if there is no such call or options are missing, `conflict` if it is running, and `invalidState` if its record is damaged. Cold.
   */
  resume$<Output>(
    target: Resumable<Output>,
    callId: string,
    options?: ResumeOptions,
  ): Observable<Reply<Output>>;
  /** As `resume$`, but emits the events of the call and its sub-agents, from `stepReplayed` to `postCall`. Cold. */
  resumeStream$(target: Resumable, callId: string, options?: ResumeOptions): Observable<AgentEvent>;
  /** The Promise form of `resume$`. Starts immediately. */
  resume<Output>(
    target: Resumable<Output>,
    callId: string,
    options?: ResumeOptions,
  ): Promise<Reply<Output>>;
  /**
   * Resumes the unfinished calls of an agent that a process or a database has left, the oldest first, up to four at a time. Emits
   * what became of each as it ends: an error of one does not stop the others. Skips those that another process runs, calls of
   * sessions, which a kept session resumes itself, and forks. Errors with `store` if the calls cannot be listed. Cold; unsubscribing stops them all.
   */
  resumeAll$<Output>(
    agent: NamedResumable<Output>,
    options?: ResumeAllOptions,
  ): Observable<ResumedCall<Output>>;
}

/**
 * Returns a layer that records every step of a call in a store, such as that of `createCallStore`, or with a function that runs each step once, such as that of a
 * workflow engine. If the process ends, `resume$` continues after the last step. Sub-agents are recorded with their root call, even if they have their own journal.
 *
 * @example
 * ```ts
 * const durable = journal(openFiles('kept').calls); // of `@millrace/store`
 * const agent = createAgent({ model, tools, use: [durable] });
 * await agent.call('Book a table.', { callId: 'booking-1' });
 * await durable.resume(agent, 'booking-1'); // in another process, after a crash
 * ```
 */
export function journal<Store extends JournalStore>(
  store: Store,
  options?: JournalOptions,
): Journal<Store>;
export function journal(step$: OpenJournal['step$'], options?: JournalOptions): Journal;
export function journal(
  place: JournalStore | OpenJournal['step$'],
  options: JournalOptions = {},
): Journal {
  checkOptions('journal()', options, journalRules);
  const { redact, ...settings } = options;
  const store = typeof place === 'function' ? storeOf(place) : place;
  if (!having('open$', '')[0](store)) {
    throw misuse('journal() needs a store of calls, such as createCallStore(driver).');
  }
  const records = redact === undefined ? store : redactedStore(store, redact);
  const running = createDraining();
  const see$ = <Output, Seen>(
    target: Resumable<Output>,
    callId: string,
    given: ResumeOptions,
    view: (
      target: ReturnType<Resumable<Output>['with']>,
      ...call: [input: Input, options: CallOptions]
    ) => Observable<Seen>,
  ): Observable<Seen> => {
    checkCallOptions('resume$()', given, resumeRules);
    if (!having('with', '')[0](target)) {
      throw misuse(
        'resume$() needs an agent or a session. A kept session resumes itself: kept.resume$(callId).',
      );
    }
    if (typeof callId !== 'string' || callId === '') {
      throw misuse('resume$() needs the id of a call.');
    }
    const unknown$ = throwError(() => unknownCall(callId));
    const goOn$ = (open: OpenJournal, first: unknown, mark: () => void): Observable<Seen> => {
      const written = readCallRecord(callId, first);
      const { onUncertain = settings.onUncertain, ...callOptions } = given;
      assertGiven(callId, written, { ...given });
      mark();
      const drained = running.untilDrained(open, callId, mark);
      const layers = resumedBy({ journal: drained, onUncertain }, written);
      // Also last: a journal among the layers of the call must not replace them.
      const use = [...(given.use ?? []), ...layers];
      const before = plainOptionsIn(written.options);
      const laid = { ...before, ...defined(callOptions), ...withDefaults(before, callOptions) };
      const own = { ...laid, use, callId };
      return view(target.with(...layers), written.input, own);
    };
    return running.track$(
      (mark) =>
        records.open$(callId, (open) =>
          open
            .step$(`${callId}/${callStep}`, () => unknown$)
            .pipe(concatMap((written) => goOn$(open, written, mark))),
        ),
      callId,
    );
  };
  const resume$: Journal['resume$'] = <Output>(
    target: Resumable<Output>,
    callId: string,
    resumeOptions: ResumeOptions = {},
  ) =>
    see$(target, callId, resumeOptions, (it, ...call) => it.call$(...call)).pipe(
      filter(holds<Output>),
    );
  const resumeAll$: Journal['resumeAll$'] = <Output>(
    agent: NamedResumable<Output>,
    { parallel, where, ...callOptions }: ResumeAllOptions = {},
  ): Observable<ResumedCall<Output>> => {
    const own = defined({ parallel, where });
    checkOptions('resumeAll$()', own, resumeAllRules);
    if (!having('with', '')[0](agent) || typeof agent.name !== 'string') {
      throw misuse('resumeAll$() needs an agent.');
    }
    return defer(() =>
      resumeLeft$<Output>(store, agent.name, own, (callId) => resume$(agent, callId, callOptions)),
    );
  };
  return trusted({
    ...recording((context, call$) => begun$(records, running, settings, context, call$)),
    store,
    resume$,
    resumeStream$: (target, callId, resumeOptions = {}) =>
      see$(target, callId, resumeOptions, (it, ...call) => it.stream$(...call)),
    resume: (target, callId, resumeOptions) =>
      lastValueFrom(defer(() => resume$(target, callId, resumeOptions))),
    resumeAll$,
    drain$: running.drain$,
    drain: running.drain,
  });
}

const storeOf = (step$: OpenJournal['step$']): JournalStore => ({
  // An engine need not complete.
  open$: (_callId, run) => run({ step$: (id, work) => step$(id, work).pipe(take(1)) }),
});

const holds = <Output>(reply: Reply): reply is Reply<Output> => isRecord(reply);

const logs = cell('family', () => new Map<string, CallLog>());

const stepsOf = cell('call', (): { by?: CallSteps } => ({}));

const forks = cell('family', (): { made: readonly Fork[] } => ({ made: [] }));

export const forksAbove = (parent: ToolContext | undefined): readonly Fork[] =>
  parent === undefined ? [] : toolScopeOf(parent).scope.context.local(forks).made;

const recording = (open: <T>(context: Context, call$: Observable<T>) => Observable<T>): Layer => ({
  name: 'journal',
  priority: layerPlaces.journal,
  single: true,
  inherit: true,
  record: (context) => {
    const { parentId } = context.info;
    const above = parentId === undefined ? undefined : context.local(logs).get(parentId);
    if (above === undefined) return (call$) => open(context, call$);
    const continued = continuedBelow(above.journal, context);
    if (context.layers.includes(suspendBelow)) {
      reach(context, (id) => above.journal.isWritten?.(id) === true);
    }
    begin(context, { ...above, journal: continued, isOutermost: false });
    return withoutSuspended(context);
  },
  call: (context) => (next) => {
    const { by } = context.local(stepsOf);
    return by === undefined ? next : recordedAnswer(context, by, next);
  },
  // Looked up at each step: an outer `open` may perform a step before this one starts.
  step:
    ({ local }) =>
    (next) => {
      let own: Perform | undefined;
      return (step) => {
        const { by } = local(stepsOf);
        return by === undefined ? next(step) : (own ??= by.around(next))(step);
      };
    },
});

const begun$ = <T>(
  store: JournalStore,
  { track$, untilDrained }: RunningCalls,
  settings: Pick<ResumeOptions, 'onUncertain'>,
  context: Context,
  call$: Observable<T>,
): Observable<T> => {
  const { callId, parentId } = context.info;
  const running = context.local(recordedCalls);
  const tracked$ = track$(
    (mark) =>
      store.open$(callId, (open) => {
        if (open.isWritten?.(`${callId}/${callStep}`) === true) throw alreadyBegun(callId);
        const drained = untilDrained(open, callId, mark);
        begin(context, { ...settings, journal: drained, isOutermost: true, isResumed: false });
        running.begin(callId);
        return call$;
      }),
    callId,
  );
  // Parallel calls of an unrecorded parent end before the teardown.
  return parentId === undefined ? tracked$ : tracked$.pipe(running.ended(callId));
};

const recordedCalls = cell('family', createRunning);

const resumedBy = (
  log: Pick<CallLog, 'journal' | 'onUncertain'>,
  { agent, sessionId, history, options, ...begun }: CallRecord,
): Use => [
  interruptLayer,
  resuming(
    trusted(
      recording((context, call$) => {
        const { info: call, local } = context;
        const name = call.agent.at(-1);
        if (agent !== name) throw ofAnother(call.callId, agent, name);
        if (sessionId !== call.sessionId) throw ofSession(call.callId, sessionId);
        local(forks).made = begun.forks ?? [];
        local(keySeed).id = begun.keySeed;
        begin(context, { ...log, isOutermost: true, isResumed: true });
        return call$;
      }),
    ),
  ),
  ...(history === undefined ? [] : carrying(() => history, true)),
  ...(history !== undefined || options.history === undefined
    ? []
    : carrying(
        (call, { local }) => readHistory(options.history, { ...call, ...local(voices) }),
        false,
      )),
];

const carrying = (
  read: (call: CallInfo, context: Context) => readonly Message[],
  isNew: boolean,
): readonly Layer[] => [
  trusted({
    name: 'carried',
    priority: layerPlaces.repair,
    call: (context) => (next) => (call) => {
      const messages = read(context.info, context);
      context.local(givenHistory).messages = messages;
      return next({
        ...call,
        // It has the messages before the question.
        ...(isNew && { history: [] }),
        late: isNew && call.memory !== noMemory ? messages : [],
        // Results that the forked call took are in its history.
        ...(isNew &&
          suspensionsIn(messages).length === 0 && { input: splitInput(call.input).input }),
      });
    },
  }),
  conversation,
];

const begin = (context: Context, log: CallLog): void => {
  const { info: call, demand, hooks, interruption, local } = context;
  const { callId } = call;
  const { journal: open, isResumed, isOutermost } = log;
  const { lastSeq = 0, listener, wasDelivered } = open;
  const known = local(logs);
  if (known.has(callId)) throw twice(callId);
  known.set(callId, log);
  if (isOutermost) {
    const numbers = local(numbering);
    numbers.last = Math.max(numbers.last, lastSeq);
    if (open.demand !== undefined) demand.join(open.demand);
  }
  const replaying = isResumed
    ? createReplayFilter((type) => wasDelivered?.(callId, type) === true)
    : undefined;
  if (listener !== undefined) hooks.attend({ listener });
  if (replaying !== undefined) hooks.attend({ deliver: replaying.emit });
  // Replayed steps must not be cut.
  if (open.isWritten?.(`${callId}/open`) === true) interruption.pause();
  const by = callSteps(log, replaying, context);
  local(stepsOf).by = by;
  local(recorded).by = by;
  Object.assign(local(earlierToolCalls), earlierCalls(log, context));
};

const recordedAnswer = (
  context: Context,
  { begin: perform, isResumed, isOutermost, interrupt$, recall$, hasEnded }: CallSteps,
  next: Answer,
): Answer => {
  const { info, local } = context;
  const noted$ = (input: readonly Message[]): Observable<unknown> => {
    // Sub-agents are started by their parent's record.
    if (!isOutermost) return of(undefined);
    const form = isResumed ? resumption : beginning(info.callId);
    const run = () =>
      defer(() => of(callRecord(info, local(keySeed).id, input, local(givenOptions).own)));
    return perform({ kind: 'call', id: callStep, input, run, form });
  };
  const ended$ = (): Observable<Reply> =>
    perform<Reply>({
      kind: 'reply',
      id: 'reply',
      input: undefined,
      run: () => throwError(() => noReply()),
    }).pipe(
      // `preCall` was delivered before.
      tap(() => (local(callProgress).input = undefined)),
    );
  return (call) =>
    noted$([...call.history, ...(local(callProgress).input ?? call.input)]).pipe(
      continueWith(() => recall$()?.pipe(defaultIfEmpty(undefined)) ?? of(undefined)),
      continueWith(() => {
        if (isOutermost && hasEnded) return ended$();
        const reply$ = next(call).pipe(throwIfEmpty(noReply), reportingAbove(context));
        return isInterruptible(context) ? reply$.pipe(takeUntil(interrupt$)) : reply$;
      }),
    );
};

const twice = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The root call already has a call '${callId}'. Give each a unique id, or none.`,
  );

const noReply = (): MillraceError =>
  new MillraceError('invalidState', 'The journal has no reply of the call.');

const unknownCall = (callId: string): MillraceError =>
  new MillraceError(
    'invalidResume',
    `There is no call '${callId}' in the journal: it never started, or was removed. List its calls with calls$(store).`,
  );

const ofAnother = (callId: string, agent: string, name = ''): MillraceError =>
  new MillraceError(
    'invalidResume',
    `The call '${callId}' belongs to the agent '${agent}', not '${name}'. Resume it with '${agent}'.`,
  );

const ofSession = (callId: string, sessionId: string | undefined): MillraceError =>
  new MillraceError(
    'invalidResume',
    sessionId === undefined
      ? `The call '${callId}' has no session. Resume it with resume$(agent, '${callId}').`
      : `The call '${callId}' belongs to the session '${sessionId}'. Resume it with resume$(session, '${callId}'), where session is sessions(agent, …).open('${sessionId}').`,
  );
