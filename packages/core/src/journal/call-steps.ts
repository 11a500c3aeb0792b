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
} from 'rxjs';
import type { CallContext, CallSteps } from '../call-context.js';
import { MillraceError } from '../errors.js';
import type { Hooks } from '../hooks.js';
import type { Interrupt } from '../interruption.js';
import type { Perform, Step, StepForm } from '../step.js';
import { hasFields, isNumeric, isOptional, isString } from '../shape.js';
import { halting } from './halt.js';
import { interruptStep } from './interrupt-step.js';
import { unwritten } from './journal.js';
import { recording, type StepListener } from './step.js';

/** Makes the journal of a call. */
export const callSteps = (scope: Needs, hooks: Hooks): CallSteps => {
  const { journal, call, replaying } = scope;
  if (journal === unwritten) return none;
  const begin = recording(journal, call.callId, listener(scope, hooks), runs);
  const isWritten = (id: string): boolean => journal.isWritten?.(`${call.callId}/${id}`) === true;
  const mayBeWritten = (id: string): boolean =>
    replaying !== undefined && journal.isWritten?.(`${call.callId}/${id}`) !== false;
  const steps = { begin, isWritten, mayBeWritten };
  return { ...steps, ...interruptible(steps, scope, listener(scope, hooks)) };
};

type Needs = Pick<CallContext, 'journal' | 'call' | 'interruption' | 'replaying'>;

const runs: Perform = (step) => step.run(1);

const none: CallSteps = {
  layer: undefined,
  begin: runs,
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
      `The call '${callId}' has its reply, and its agent would run a step '${id}' now that was not recorded: it is another one than it was. Resume the call with the agent that began it.`,
    ),
  );

/** Reports what happens at the steps of a resumed call. */
const listener = ({ replaying }: Pick<CallContext, 'replaying'>, hooks: Hooks): StepListener => ({
  replayed: (step, message) => {
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
