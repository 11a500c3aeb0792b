import type { MonoTypeOperatorFunction, SchedulerLike } from 'rxjs';
import { AsyncSubject, defer, Observable, observeOn, of, Subject, Subscription } from 'rxjs';
import { type MillraceError, misuse } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { areBlocks, textOf } from '../values/message.js';
import { hear } from './contained.js';

/** A request to end a call with a partial answer. */
export interface Interrupt {
  /** The text of the reply. Default: the partial text, or a short sentence. */
  readonly message?: string;
}

export interface Interruption {
  /** The first interrupt, if any. */
  readonly current: Interrupt | undefined;
  /** Emits the interrupt and completes, even if it came before the subscription. */
  readonly signal$: Observable<Interrupt>;
  /** The same, but also emits an interrupt that waits, for steps that only wait. */
  readonly asked$: Observable<Interrupt>;
  /** Interrupts, immediately or once interrupts are resumed; false if the loop has ended. Throws `config` without `interruptLayer`. */
  trigger(interrupt: Interrupt): boolean;
  /** Holds a step: an interrupt cuts it as soon as nothing holds it. Call the returned function once to release it. */
  hold(stepId: string): () => void;
  /** Emits and completes as soon as nothing holds the step. */
  released$(stepId: string): Observable<void>;
  /** Keeps interrupts waiting from now on: replayed steps must not be cut. */
  pause(): void;
  resume(first?: Interrupt): void;
  close(): void;
}

export const createInterruption = (
  scheduler: SchedulerLike,
  isInterruptible: boolean,
): Interruption => {
  const { hold, released$ } = createHolds(scheduler);
  const signal$ = new AsyncSubject<Interrupt>();
  const asked$ = new AsyncSubject<Interrupt>();
  const ask = (interrupt: Interrupt): void => {
    asked$.next(interrupt);
    asked$.complete();
  };
  let closed = false;
  let mayCut = true;
  let waiting: Interrupt | undefined;
  const interruptBy = (interrupt: Interrupt): void => {
    if (interruption.current !== undefined) return;
    interruption.current = interrupt;
    ask(interrupt);
    signal$.next(interrupt);
    signal$.complete();
  };
  // Without an accessor: each would get a shape of its own.
  const interruption: Interruption & { current: Interrupt | undefined } = {
    current: undefined,
    signal$,
    asked$,
    trigger: (interrupt) => {
      if (!isInterruptible) throw notInterruptible();
      if (closed) return false;
      if (mayCut) interruptBy(interrupt);
      else {
        waiting ??= interrupt;
        ask(interrupt);
      }
      return true;
    },
    hold,
    released$,
    pause: () => {
      mayCut = false;
    },
    resume: (first) => {
      mayCut = true;
      const interrupt = first ?? waiting;
      waiting = undefined;
      if (interrupt !== undefined && !closed) interruptBy(interrupt);
    },
    close: () => {
      closed = true;
    },
  };
  return interruption;
};

const notInterruptible = (): MillraceError =>
  misuse(
    'The call cannot be interrupted: put `interruptLayer` of millrace/call in the list of the layer that does so.',
  );

/** As `takeUntil`, but tears the source down before it completes: a tool has stopped when its result is reported. */
export const cutBy =
  <T>(cut$: Observable<unknown>): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable<T>((to) => {
      const running = new Subscription();
      const stop = (): void => {
        running.unsubscribe();
        to.complete();
      };
      to.add(cut$.subscribe({ next: stop, error: (cause: unknown) => to.error(cause) }));
      if (to.closed) return;
      to.add(running);
      hear(
        source,
        {
          next: (value) => to.next(value),
          error: (cause: unknown) => to.error(cause),
          complete: () => to.complete(),
        },
        running,
      );
    });

/** Converts a signal to an interrupt. The text is a string, its `message`, or the text of a message; otherwise none. */
export const toInterrupt = (signal: unknown): Interrupt => {
  if (typeof signal === 'string') return { message: signal };
  if (!isRecord(signal) || signal instanceof Error) return {};
  const { content, message } = signal;
  if (areBlocks(content)) return { message: textOf({ content }) };
  return message === undefined ? {} : toInterrupt(message);
};

/**
 * Holds of the steps of one call: by their sub-agents, which end from the inside out, and by interceptors of their results. A tool
 * whose sub-agents were interrupted gets a moment to return a result.
 */
const createHolds = (scheduler: SchedulerLike): Pick<Interruption, 'hold' | 'released$'> => {
  const held = new Map<string, { count: number; readonly none$: Subject<void> }>();
  return {
    hold: (stepId) => {
      const hold = held.get(stepId) ?? { count: 0, none$: new Subject<void>() };
      hold.count += 1;
      held.set(stepId, hold);
      return () => {
        hold.count -= 1;
        if (hold.count > 0) return;
        held.delete(stepId);
        hold.none$.next();
        hold.none$.complete();
      };
    },
    released$: (stepId) =>
      defer(() => held.get(stepId)?.none$.pipe(observeOn(scheduler)) ?? of(undefined)),
  };
};
