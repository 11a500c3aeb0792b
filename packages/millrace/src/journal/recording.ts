import { andThen, atOnce, deferWork } from '../flow/eventual.js';
import {
  type MonoTypeOperatorFunction,
  type Observable,
  AsyncSubject,
  concat,
  concatMap,
  EMPTY,
  ignoreElements,
  of,
  share,
  Subject,
  take,
  map,
} from 'rxjs';
import { fatal, MillraceError } from '../values/errors.js';
import type { EventType } from '../events.js';
import type { Hooks } from '../seams/hooks.js';
import type { Interrupt } from '../flow/interruption.js';
import type { Context } from '../seams/layer.js';
import type { Perform, Step } from '../step.js';
import type { LoopCall } from '../seams/call.js';
import { replayedSteps } from '../seams/spending.js';
import type { Tool } from '../tools/types.js';
import { noMemory } from '../values/memory.js';
import { failedOutput, type ToolOutput } from '../values/tool-output.js';
import { hasFields, isNumeric, isOptional, isString } from '../values/shape.js';
import { interruptStep } from './call-record.js';
import { formOf, mayRepeat, restoreGroups, type StepForm, taken } from './step-forms.js';
import { waitedIn } from './below.js';
import { ending, isRest } from './draining.js';
import type { OpenJournal } from './call-store-driver.js';
import { frozen, type ToolCallBlock } from '../values/message.js';
import type { EarlierToolCalls } from '../phases/run-tool.js';
import { byJournal, endUnknown } from '../memories/cancel-suspended.js';
import type { Recorded } from '../memories/recorded.js';
import { intentOf } from './steps.js';
import { suspend } from '../memories/suspend.js';

export interface CallLog {
  readonly journal: OpenJournal;
  readonly isOutermost: boolean;
  readonly isResumed: boolean;
  readonly onUncertain?: 'ask' | 'report' | 'rerun' | undefined;
}

export interface CallSteps extends Recorded, Omit<CallLog, 'journal'> {
  readonly around: (next: Perform) => Perform;
  readonly begin: Perform;
  readonly interrupt$: Observable<never>;
  readonly recall$: () => Observable<unknown> | undefined;
}

export const callSteps = (
  { journal, ...log }: CallLog,
  replaying: ReplayFilter | undefined,
  context: Context,
): CallSteps => {
  const { callId } = context.info;
  const listens = listener(replaying, context);
  const begin = recording(journal, context, listens, runs);
  const isWritten = (id: string): boolean => journal.isWritten?.(`${callId}/${id}`) === true;
  const mayBeWritten = (id: string): boolean =>
    log.isResumed && journal.isWritten?.(`${callId}/${id}`) !== false;
  const hasEnded = journal.hasEnded === true;
  const steps = { begin, hasEnded, isWritten, mayBeWritten };
  return { ...log, ...steps, ...interruptible(steps, journal, context, listens) };
};

/** A tool that was running when its process ended may have run, so it never runs again silently. */
export const earlierCalls = (
  { onUncertain }: Pick<CallLog, 'onUncertain'>,
  context: Context,
): EarlierToolCalls => {
  const { hooks, local } = context;
  const waited = waitedIn(context);
  const replayed = local(replayedSteps);
  const repeated = new Set<string>();
  return {
    outcomeOf: (id, toolCall, call) => {
      if (!replayed.has(intentOf(id))) return undefined;
      const tool = call.toolkit.current.find(toolCall.name);
      const { then, output, checked$ }: Known =
        waited(id, toolCall, tool) ??
        uncertain(onUncertain, toolCall, tool, call, mayRepeat(tool, local));
      if (then === 'rerun') repeated.add(id);
      if (then !== undefined) {
        hooks.report(iterationOf(id, hooks), { type: 'uncertain', toolCall, then });
      }
      return (
        output && {
          output,
          failed: then === undefined && output.isError,
          ...(checked$ && { checked$ }),
        }
      );
    },
    refusalOf: (id, why) => (repeated.has(id) ? `${endUnknown} It was not run again. ${why}` : why),
    wasReported: (id) => replayed.has(id),
  };
};

interface Known {
  readonly then?: 'ask' | 'report' | 'rerun';
  /** Without it, the tool runs again. */
  readonly output?: ToolOutput;
  /** The output after the check of what a client has brought. */
  readonly checked$?: Observable<ToolOutput>;
}

const uncertain = (
  onUncertain: CallLog['onUncertain'] = 'ask',
  { name }: ToolCallBlock,
  tool: Tool | undefined,
  { memory }: LoopCall,
  isRepeatable: boolean,
): Known => {
  if (isRepeatable) return { then: 'rerun' };
  // Without a memory, no later call could supply the result.
  if (onUncertain === 'ask' && memory !== noMemory) {
    // A client has no way to know, and its result would be taken for that of the tool.
    const request = { uncertain: true, tool: name };
    return { then: onUncertain, output: suspend(request, { from: 'program', by: byJournal }) };
  }
  // A removed tool cannot run.
  return onUncertain === 'rerun' && tool !== undefined
    ? { then: onUncertain }
    : { then: 'report', output: failedOutput(endUnknown) };
};

const runs: Perform = (step) => step.run(1);

interface Noted extends Interrupt {
  readonly afterSteps: number;
}

const notedForm: StepForm<Noted> = {
  isWritten: (written) =>
    hasFields(written, { message: isOptional(isString), afterSteps: isNumeric }),
};

/** Repeats a recorded interrupt after as many steps, or before a new step runs. New interrupts wait until then. */
const interruptible = (
  { begin, isWritten, mayBeWritten }: Pick<CallSteps, 'begin' | 'isWritten' | 'mayBeWritten'>,
  journal: OpenJournal,
  context: Pick<Context, 'info' | 'interruption' | 'local'>,
  listens: StepListener,
): Pick<CallSteps, 'around' | 'interrupt$' | 'recall$'> => {
  const { info: call, interruption } = context;
  const isAnswered = isWritten('reply');
  let ended = 0;
  let recalled: Noted | undefined;
  const comesAgain = (): void => {
    if (recalled !== undefined && ended >= recalled.afterSteps) interruption.resume(recalled);
  };
  const interrupt$ = interruption.signal$.pipe(
    concatMap(({ message }) => {
      const noted = { ...(message !== undefined && { message }), afterSteps: ended };
      return recalled === undefined
        ? journal.step$(`${call.callId}/${interruptStep}`, () => of(noted))
        : EMPTY;
    }),
    ignoreElements(),
    share({ connector: () => new AsyncSubject<never>(), resetOnComplete: false }),
  );
  const around = (next: Perform): Perform => {
    const recorded = recording(
      journal,
      context,
      {
        replayed: (step, written, warning) => {
          listens.replayed(step, written, warning);
          ended += 1;
          comesAgain();
        },
        begins: (id, shown) => {
          if (isAnswered && isOfTurn.test(id)) throw changed(call.callId, id);
          if (!isAnswered) interruption.resume(recalled);
          listens.begins(id, shown);
        },
        ended$: () => {
          // Counted before it is recorded: an interrupt that comes meanwhile does not undo the step.
          ended += 1;
          // The interrupt is recorded before the value of the step it cut.
          return interruption.current === undefined ? undefined : interrupt$;
        },
      },
      next,
    );
    return (step) =>
      // Waits are not recorded.
      step.kind === 'wait' ? next(step) : recorded(step);
  };
  return {
    around,
    interrupt$,
    recall$: () =>
      mayBeWritten(interruptStep)
        ? begin<Noted>({
            kind: 'interrupt',
            id: interruptStep,
            input: undefined,
            run: () => EMPTY,
            form: notedForm,
          }).pipe(
            map((it) => {
              recalled = it;
              comesAgain();
            }),
          )
        : undefined,
  };
};

const isOfTurn = /^\d/;

const changed = (callId: string, id: string): MillraceError =>
  fatal(
    new MillraceError(
      'invalidState',
      `The call '${callId}' has its reply, but its agent would run the step '${id}', which was not recorded. Resume it with the agent that started it.`,
    ),
  );

const listener = (
  replaying: ReplayFilter | undefined,
  { local, hooks }: Pick<Context, 'local' | 'hooks'>,
): StepListener => ({
  replayed: ({ kind, id: step }, written, message) => {
    local(replayedSteps).add(step);
    const iteration = iterationOf(step, hooks);
    replaying?.advance();
    hooks.report(iteration, { type: 'stepReplayed', step });
    if (message !== undefined) {
      replaying?.bypass(() => hooks.report(iteration, { type: 'warning', message }));
    }
    // The events of the change were delivered before.
    if (kind === 'tool' && restoreGroups(local, written)) replaying?.advance();
  },
  begins: (step, shown) => {
    replaying?.end();
    const why = 'The call is resumed.';
    for (const messageId of shown) {
      hooks.report(iterationOf(step, hooks), { type: 'messageDiscarded', messageId, why });
    }
  },
});

const iterationOf = (step: string, hooks: Hooks): number => {
  const iteration = Number.parseInt(step, 10);
  return Number.isNaN(iteration) ? hooks.iteration() : iteration;
};

interface StepListener {
  readonly replayed: (
    step: Pick<Step<unknown>, 'kind' | 'id'>,
    written: unknown,
    warning: string | undefined,
  ) => void;
  readonly begins: (id: string, shown: readonly string[]) => void;
  /** Called when a step has its value. Returns work that must be recorded before it. */
  readonly ended$?: () => Observable<never> | undefined;
}

const recording = (
  journal: OpenJournal,
  context: Pick<Context, 'info' | 'local'>,
  { replayed, begins, ended$ }: StepListener,
  next: Perform,
): Perform => {
  const { callId } = context.info;
  const { cutShort = new Set<string>() } = journal;
  const passed = new Set<string>();
  const running = createRunning();
  const wasSkipped = ({ id, optional }: Pick<Step<unknown>, 'id' | 'optional'>): boolean =>
    optional === true &&
    journal.isWritten?.(`${callId}/${id}`) !== true &&
    loopSteps(journal, callId).some((it) => !passed.has(it));
  return <T>(step: Step<T>) => {
    if (wasSkipped(step)) return EMPTY;
    const { id } = step;
    const { write = itself, isWritten: isForm, read = taken<T>, warning } = formOf(step, context);
    let made: { readonly value: T } | undefined;
    const work$ = (): Observable<unknown> =>
      deferWork(() => {
        const shown = attemptsAt(`${callId}/${id}`, cutShort);
        begins(id, [...shown.keys()]);
        if (isParallel(id)) running.begin(id);
        const before = Math.max(0, ...shown.values());
        const value = atOnce(next({ ...step, run: (attempt) => step.run(before + attempt) }));
        return andThen(value, (it) => {
          made = { value: it };
          const first$ = ended$?.();
          return first$ === undefined ? write(it) : concat(first$, of(write(it)));
        });
      });
    const value$ = deferWork(() =>
      andThen(atOnce(journal.step$(`${callId}/${id}`, work$)), (written) => {
        passed.add(id);
        if (made !== undefined) return made.value;
        if (isForm?.(written) === false) throw unreadable(callId, id);
        const value = frozen(read(written));
        replayed(step, written, warning?.(written));
        return value;
      }),
    );
    return isParallel(id) ? value$.pipe(running.ended(id)) : value$;
  };
};

const isParallel = (id: string): boolean => /^\d+\/\d+(?:\/intent)?$/.test(id);

/** Parallel work. An error by which a drained part ends waits until the others have ended or are drained. */
export const createRunning = () => {
  const running = new Set<string>();
  const idle$ = new Subject<void>();
  const end = (id: string): void => {
    if (running.delete(id) && running.size === 0) idle$.next();
  };
  return {
    begin: (id: string): void => void running.add(id),
    ended: <T>(id: string): MonoTypeOperatorFunction<T> =>
      ending((error) => {
        end(id);
        return isRest(error) && running.size > 0 ? idle$.pipe(take(1)) : undefined;
      }),
  };
};

const loopSteps = ({ stepIds }: OpenJournal, callId: string): readonly string[] =>
  [...(stepIds?.() ?? [])]
    .filter((id) => id.startsWith(`${callId}/`))
    .map((id) => id.slice(callId.length + 1))
    .filter((id) => /^(?:\d+(?:\/|$)|reply$)/.test(id));

const attemptsAt = (stepId: string, cutShort: ReadonlySet<string>): ReadonlyMap<string, number> =>
  new Map(
    [...cutShort].flatMap((messageId) => {
      const rest = messageId.startsWith(stepId) ? messageId.slice(stepId.length) : undefined;
      const attempt = rest === undefined ? null : /^(?:~(\d+))?(?:#\d+)?$/.exec(rest);
      return attempt === null ? [] : [[messageId, Number(attempt[1] ?? 1)] as const];
    }),
  );

const itself = (value: unknown): unknown => value;

const unreadable = (callId: string, id: string): MillraceError =>
  fatal(
    new MillraceError(
      'invalidState',
      `The record of the step '${id}' of the call '${callId}' is damaged, or of another version of the agent. Make a new call, or fork this one before the step: fork$(store, callId, { at }).`,
    ),
  );

export interface ReplayFilter {
  readonly emit: (type: EventType, isEnd: boolean, now: () => void) => void;
  readonly advance: () => void;
  readonly bypass: (emit: () => void) => void;
  readonly end: () => void;
}

export const createReplayFilter = (wasDelivered: (type: EventType) => boolean): ReplayFilter => {
  let held: { readonly type: EventType; readonly now: () => void }[] = [];
  let hasPassed = false;
  let isOver = false;
  let isBypassed = false;
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    const rest = held;
    held = [];
    for (const { type, now } of rest) {
      // A call without recorded steps starts again, for its current observers.
      if (!hasPassed || !wasDelivered(type)) now();
    }
  };
  return {
    emit: (type, isEnd, now) => {
      if (isEnd) end();
      if (isOver || isBypassed || type === 'stepReplayed') now();
      else held.push({ type, now });
    },
    advance: () => {
      hasPassed = true;
      if (!isOver) held = [];
    },
    bypass: (emit) => {
      isBypassed = true;
      emit();
      isBypassed = false;
    },
    end,
  };
};
