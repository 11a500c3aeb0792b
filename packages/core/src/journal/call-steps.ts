import {
  AsyncSubject,
  concat,
  concatMap,
  defer,
  EMPTY,
  ignoreElements,
  type Observable,
  of,
  share,
  tap,
} from 'rxjs';
import type { CallScope } from '../call-scope.js';
import { MillraceError } from '../errors.js';
import type { Hooks } from '../hooks.js';
import type { Interrupt } from '../interruption.js';
import { hasFields, isNumeric, isOptional, isString } from '../shape.js';
import { halting } from './halt.js';
import { interruptStep } from './interrupt-step.js';
import { unwritten } from './journal.js';
import { type RunStep, type StepForm, type StepListener, stepsOf } from './step.js';

/** The steps of one call, and the interrupt that may come between them. */
export interface CallSteps {
  readonly step$: RunStep;
  /** As `step$`, of what stands before the call can be interrupted: its beginning, and its place in the session. */
  readonly begin$: RunStep;
  /** Tells whether a step is written down. */
  readonly isWritten: (id: string) => boolean;
  /** Tells whether a step may be written down: where nothing is to be done and nothing was, it can be left out. */
  readonly mayBeWritten: (id: string) => boolean;
  /** Writes down an interrupt when it comes, with its place. Errors where that fails. */
  readonly interrupt$: Observable<never>;
  /** Looks whether the call was interrupted before it was broken off: it is again, at the same place. */
  readonly recall$: Observable<never>;
}

/** Makes the steps of a call in its journal. */
export const callSteps = (scope: Needs, hooks: Hooks): CallSteps => {
  const { journal, call, replaying } = scope;
  const begin$ = stepsOf(journal, call.callId, told(scope, hooks));
  const isWritten = (id: string): boolean => journal.isWritten?.(`${call.callId}/${id}`) === true;
  const mayBeWritten = (id: string): boolean =>
    replaying !== undefined && journal.isWritten?.(`${call.callId}/${id}`) !== false;
  return journal === unwritten
    ? { step$: begin$, begin$, isWritten, mayBeWritten, interrupt$: EMPTY, recall$: EMPTY }
    : {
        begin$,
        isWritten,
        mayBeWritten,
        ...interruptible({ begin$, isWritten, mayBeWritten }, scope),
      };
};

type Needs = Pick<CallScope, 'journal' | 'call' | 'interruption' | 'replaying'>;

/** An interrupt as it is written down. */
interface Noted extends Interrupt {
  /** How many steps had ended before it came. */
  readonly behind: number;
}

const notedForm: StepForm<Noted> = {
  isWritten: (written) => hasFields(written, { message: isOptional(isString), behind: isNumeric }),
};

/**
 * An interrupt cuts the work of steps, never what they have given: so it takes effect at the same place again when it comes right behind the same number of steps, and in any case before
 * one is run. One that comes now waits until then.
 */
const interruptible = (
  { begin$, isWritten, mayBeWritten }: Pick<CallSteps, 'begin$' | 'isWritten' | 'mayBeWritten'>,
  { journal, call, interruption }: Needs,
): Pick<CallSteps, 'step$' | 'interrupt$' | 'recall$'> => {
  const isAnswered = isWritten('reply');
  let ended = 0;
  let recalled: Noted | undefined;
  const comesAgain = (): void => {
    if (recalled !== undefined && ended >= recalled.behind) interruption.release(recalled);
  };
  const interrupt$ = interruption.descend$.pipe(
    concatMap(({ message }) => {
      const noted = { ...(message !== undefined && { message }), behind: ended };
      return recalled === undefined
        ? journal.step$(`${call.callId}/${interruptStep}`, () => of(noted))
        : EMPTY;
    }),
    ignoreElements(),
    share({ connector: () => new AsyncSubject<never>(), resetOnComplete: false }),
  );
  return {
    interrupt$,
    recall$: defer(() =>
      mayBeWritten(interruptStep)
        ? begin$<Noted>(interruptStep, () => EMPTY, notedForm).pipe(
            tap((it) => {
              recalled = it;
              comesAgain();
            }),
            ignoreElements(),
          )
        : EMPTY,
    ),
    step$: <T>(id: string, work: (attempt: number) => Observable<T>, form?: StepForm<T>) =>
      defer(() => {
        let isNew = false;
        const run$ = (attempt: number): Observable<T> => {
          if (isAnswered && isOfTurn.test(id)) throw changed(call.callId, id);
          if (!isAnswered) interruption.release(recalled);
          isNew = true;
          return work(attempt).pipe(
            // An interrupt that comes while it is being written down does not undo it.
            tap(() => (ended += 1)),
            // What an interrupt has cut is written down behind it.
            concatMap((value) =>
              interruption.current === undefined ? of(value) : concat(interrupt$, of(value)),
            ),
          );
        };
        return begin$(id, run$, form).pipe(
          tap(() => {
            if (isNew) return;
            ended += 1;
            comesAgain();
          }),
        );
      }),
  };
};

/** Positions in the loop begin with the number of a turn. */
const isOfTurn = /^\d/;

const changed = (callId: string, id: string): MillraceError =>
  halting(
    new MillraceError(
      'invalidState',
      `The call '${callId}' has its reply, and its agent would run a step '${id}' now that is not written down: it is another one than it was. Resume the call with the agent that began it.`,
    ),
  );

/** Tells what happens at the steps of a call that goes on. */
const told = ({ replaying }: Pick<CallScope, 'replaying'>, hooks: Hooks): StepListener => ({
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
