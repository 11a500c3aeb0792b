import {
  AsyncSubject,
  concat,
  concatMap,
  defer,
  EMPTY,
  ignoreElements,
  of,
  share,
  tap,
  map,
  type Observable,
} from 'rxjs';
import type { CallContext, CallSteps } from '../call-context.js';
import { MillraceError } from '../errors.js';
import type { Hooks } from '../hooks.js';
import type { Interrupt } from '../interruption.js';
import { type Perform, replayedSteps, type Step, type StepForm } from '../step.js';
import {
  hasFields,
  isNumeric,
  isOptional,
  isString,
  isArrayOf,
  isAssistantMessage,
  isBoolean,
  isToolResult,
  isToolUse,
  isUsage,
} from '../shape.js';
import { halting } from './halt.js';
import { interruptStep } from './interrupt-step.js';
import { unwritten, type OpenJournal } from './journal.js';
import { frozen } from '../frozen.js';
import type { Acted } from '../act.js';
import type { Asked } from '../ask.js';
import type { Decision } from '../decide-tool.js';
import { isRecord } from '../json.js';
import { areContentBlocks } from '../message.js';
import { withPlainDetails } from '../plain-details.js';
import { endReasons, type Reply } from '../reply.js';

/** Makes the journal of a call. */
export const callSteps = (scope: Needs, hooks: Hooks): CallSteps => {
  const { journal, call, replaying } = scope;
  if (journal === unwritten) return none;
  const begin = recording(journal, call.callId, listener(scope, hooks), runs);
  const isWritten = (id: string): boolean => journal.isWritten?.(`${call.callId}/${id}`) === true;
  const mayBeWritten = (id: string): boolean =>
    replaying !== undefined && journal.isWritten?.(`${call.callId}/${id}`) !== false;
  const steps = { begin, hasEnded: journal.hasEnded === true, isWritten, mayBeWritten };
  return { ...steps, ...interruptible(steps, scope, listener(scope, hooks)) };
};

type Needs = Pick<CallContext, 'journal' | 'call' | 'interruption' | 'local' | 'replaying'>;

const runs: Perform = (step) => step.run(1);

const none: CallSteps = {
  layer: undefined,
  begin: runs,
  hasEnded: false,
  isWritten: () => false,
  mayBeWritten: () => false,
  interrupt$: EMPTY,
  recall$: EMPTY,
};

/** An interrupt as it is recorded. */
interface Noted extends Interrupt {
  /** How many steps had ended before it came. */
  readonly behind: number;
}

const notedForm: StepForm<Noted> = {
  isWritten: (written) => hasFields(written, { message: isOptional(isString), behind: isNumeric }),
};

/**
 * An interrupt cuts steps short, it never takes back what they gave. So a resumed call is interrupted again right after the same number of steps, and in any case before one is
 * run. An interrupt that comes meanwhile waits until then.
 */
const interruptible = (
  { begin, isWritten, mayBeWritten }: Pick<CallSteps, 'begin' | 'isWritten' | 'mayBeWritten'>,
  { journal, call, interruption }: Needs,
  listens: StepListener,
): Pick<CallSteps, 'layer' | 'interrupt$' | 'recall$'> => {
  const isAnswered = isWritten('reply');
  let ended = 0;
  let recalled: Noted | undefined;
  const comesAgain = (): void => {
    if (recalled !== undefined && ended >= recalled.behind) interruption.release(recalled);
  };
  const interrupt$ = interruption.signal$.pipe(
    concatMap(({ message }) => {
      const noted = { ...(message !== undefined && { message }), behind: ended };
      return recalled === undefined
        ? journal.step$(`${call.callId}/${interruptStep}`, () => of(noted))
        : EMPTY;
    }),
    ignoreElements(),
    share({ connector: () => new AsyncSubject<never>(), resetOnComplete: false }),
  );
  const live =
    (next: Perform): Perform =>
    <T>(step: Step<T>) => {
      if (isAnswered && isOfTurn.test(step.id)) throw changed(call.callId, step.id);
      if (!isAnswered) interruption.release(recalled);
      return next(step).pipe(
        concatMap((value) => {
          // Counted before it is recorded: an interrupt that comes meanwhile does not undo it.
          ended += 1;
          // The value of a step that an interrupt cut is recorded after the interrupt.
          return interruption.current === undefined ? of(value) : concat(interrupt$, of(value));
        }),
      );
    };
  const isReplayed: StepListener['replayed'] = (id, warning) => {
    listens.replayed(id, warning);
    ended += 1;
    comesAgain();
  };
  const around = (next: Perform): Perform => {
    const recorded = recording(
      journal,
      call.callId,
      { ...listens, replayed: isReplayed },
      live(next),
    );
    return (step) =>
      // A wait is no question to the world.
      step.kind === 'wait' ? next(step) : recorded(step);
  };
  return {
    layer: { name: 'journal', priority: 30, step: () => around },
    interrupt$,
    recall$: defer(() =>
      mayBeWritten(interruptStep)
        ? begin<Noted>({
            kind: 'interrupt',
            id: interruptStep,
            input: undefined,
            run: () => EMPTY,
            form: notedForm,
          }).pipe(
            tap((it) => {
              recalled = it;
              comesAgain();
            }),
            ignoreElements(),
          )
        : EMPTY,
    ),
  };
};

/** Positions in the loop begin with the number of a turn. */
const isOfTurn = /^\d/;

const changed = (callId: string, id: string): MillraceError =>
  halting(
    new MillraceError(
      'invalidState',
      `The call '${callId}' has its reply, but its agent would run the step '${id}', which was not recorded. Resume it with the agent that began it.`,
    ),
  );

/** Reports what happens at the steps of a resumed call. */
const listener = (
  { local, replaying }: Pick<CallContext, 'local' | 'replaying'>,
  hooks: Hooks,
): StepListener => ({
  replayed: (step, message) => {
    local(replayedSteps).add(step);
    const iteration = iterationOf(step, hooks);
    replaying?.passed();
    hooks.report(iteration, { type: 'stepReplayed', step });
    if (message === undefined) return;
    replaying?.aside(() => hooks.report(iteration, { type: 'warning', message }));
  },
  begins: (step, shown) => {
    replaying?.end();
    const why = 'The call was broken off, and goes on.';
    for (const messageId of shown) {
      hooks.report(iterationOf(step, hooks), { type: 'messageDiscarded', messageId, why });
    }
  },
});

/** A position begins with it. */
const iterationOf = (step: string, hooks: Hooks): number => {
  const iteration = Number.parseInt(step, 10);
  return Number.isNaN(iteration) ? hooks.iteration() : iteration;
};

/** What happens at the steps of a call that is resumed. */
interface StepListener {
  /** A step is answered by its record. */
  readonly replayed: (id: string, warning: string | undefined) => void;
  /** A step is run. These messages of an earlier attempt, which was cut off, were shown. */
  readonly begins: (id: string, shown: readonly string[]) => void;
}

/**
 * Performs the steps of one call once, ever: a step without a record is passed on and its value recorded, a recorded one is answered by its record. An optional step that was
 * not recorded while later ones were is skipped: nothing had happened there.
 */
const recording = (
  journal: OpenJournal,
  callId: string,
  { replayed, begins }: StepListener,
  next: Perform,
): Perform => {
  const { cutShort = new Set<string>() } = journal;
  const passed = new Set<string>();
  /** Whether an optional step has no record, and one that came later has: it is yet to be replayed. */
  const wasSkipped = ({ id, optional }: Pick<Step<unknown>, 'id' | 'optional'>): boolean =>
    optional === true &&
    journal.isWritten?.(`${callId}/${id}`) !== true &&
    loopSteps(journal, callId).some((it) => !passed.has(it));
  return <T>(step: Step<T>) => {
    if (wasSkipped(step)) return EMPTY;
    const { id } = step;
    const { write = itself, isWritten: isForm, read = taken<T>, warning } = formOf(step);
    let made: { readonly value: T } | undefined;
    const work$ = (): Observable<unknown> => {
      const shown = attemptsAt(`${callId}/${id}`, cutShort);
      begins(id, [...shown.keys()]);
      const before = Math.max(0, ...shown.values());
      return next({ ...step, run: (attempt) => step.run(before + attempt) }).pipe(
        map((value) => {
          made = { value };
          return write(value);
        }),
      );
    };
    return journal.step$(`${callId}/${id}`, work$).pipe(
      map((written) => {
        passed.add(id);
        if (made !== undefined) return made.value;
        if (isForm?.(written) === false) throw unreadable(callId, id);
        const value = frozen(read(written));
        replayed(id, warning?.(written));
        return value;
      }),
    );
  };
};

/** The recorded steps of a call's own loop, and its reply. */
const loopSteps = ({ stepIds }: OpenJournal, callId: string): readonly string[] =>
  [...(stepIds?.() ?? [])]
    .filter((id) => id.startsWith(`${callId}/`))
    .map((id) => id.slice(callId.length + 1))
    .filter((id) => /^(?:\d+(?:\/|$)|reply$)/.test(id));

/** Messages of a step that were shown and are not whole, each with the attempt that it was made in. A model that was asked again within one has numbered them with `#`. */
const attemptsAt = (stepId: string, cutShort: ReadonlySet<string>): ReadonlyMap<string, number> =>
  new Map(
    [...cutShort].flatMap((messageId) => {
      const rest = messageId.startsWith(stepId) ? messageId.slice(stepId.length) : undefined;
      const attempt = rest === undefined ? null : /^(?:~(\d+))?(?:#\d+)?$/.exec(rest);
      return attempt === null ? [] : [[messageId, Number(attempt[1] ?? 1)] as const];
    }),
  );

const itself = (value: unknown): unknown => value;

/** What a step has given is what it gives. Steps of ours say how that is checked. */
// eslint-disable-next-line @typescript-eslint/consistent-type-assertions, @typescript-eslint/no-unnecessary-type-parameters
const taken = <T>(written: unknown): T => written as T;

const unreadable = (callId: string, id: string): MillraceError =>
  halting(
    new MillraceError(
      'invalidState',
      `The record of the step '${id}' of the call '${callId}' is broken, or of another version of the agent. Make another call, or fork this one before the step: fork$(store, callId, { at }).`,
    ),
  );

/** A message of the model: plain JSON. */
const askedForm: StepForm<Asked> = {
  isWritten: (written) =>
    hasFields(written, {
      status: (status) => status === 'answered' || status === 'interrupted' || status === 'vetoed',
      message: isAssistantMessage,
      usage: isUsage,
      says: isOptional(isString),
      finish: isOptional(isString),
      stop: isOptional(isBoolean),
      again: isOptional(isString),
      model: isOptional(isString),
      isShown: isOptional(isBoolean),
      halt: isOptional(isRecord),
      malformed: isOptional(isRecord),
    }),
};

/** What the input was made into is no JSON: it is made again. */
const decisionForm: StepForm<Decision> = {
  write: ({ value: _, ...decision }) => decision,
  isWritten: (written) =>
    hasFields(written, {
      toolUse: isToolUse,
      answer: isOptional((answer) =>
        hasFields(answer, { content: areContentBlocks, isError: isBoolean }),
      ),
      failed: isBoolean,
      usage: isUsage,
    }),
};

/** Extras are no JSON: their names are. */
const actedForm: StepForm<Acted> = {
  write: ({ extras, result, ...acted }) => ({
    ...acted,
    result: withPlainDetails(result),
    lostExtras: Object.keys(extras),
  }),
  isWritten: (written) =>
    hasFields(written, {
      index: isNumeric,
      toolUse: isToolUse,
      result: isToolResult,
      ms: isNumeric,
      executed: isBoolean,
      failed: isBoolean,
      finalAnswer: isOptional(areContentBlocks),
      stop: isBoolean,
      groups: isOptional(isArrayOf(isString)),
      usage: isUsage,
      below: isOptional(isRecord),
      lostExtras: isArrayOf(isString),
    }),
  read: (written) => ({ ...asActed(written), extras: {} }),
  warning: (written) => {
    const names = isRecord(written) ? written['lostExtras'] : undefined;
    return Array.isArray(names) && names.length > 0
      ? `A tool had passed on ${names.join(', ')} past the model, which a journal cannot hold: the tools that take it go without.`
      : undefined;
  },
};

/** Checked before it is read. */
// eslint-disable-next-line @typescript-eslint/consistent-type-assertions
const asActed = (written: unknown): Acted => written as Acted;

/** What an `output` was made into is told as JSON holds it, where the reply comes from the journal. */
const replyForm: StepForm<Reply> = {
  isWritten: (written) =>
    isAssistantMessage(written) &&
    hasFields(written, {
      reason: (reason) => endReasons.some((known) => known === reason),
      finish: isString,
      iterations: isNumeric,
      toolUses: isArrayOf(isRecord),
      suspensions: isOptional(isArrayOf(isRecord)),
      usage: isUsage,
      usageByPhase: isRecord,
      createdAt: isNumeric,
      elapsedMs: isNumeric,
    }),
};

/** The steps of the loop, by kind. Other kinds bring their own forms. */
const forms: Readonly<Record<string, unknown>> = {
  model: askedForm,
  intent: decisionForm,
  tool: actedForm,
  reply: replyForm,
};

/** How the value of a step is recorded. Without a form, whatever was recorded is taken for it. */
const formOf = <T>({ kind, form }: Pick<Step<T>, 'kind' | 'form'>): Partial<StepForm<T>> =>
  // The kind of a step says what its value is.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  form ?? ((Object.hasOwn(forms, kind) ? forms[kind] : {}) as Partial<StepForm<T>>);
