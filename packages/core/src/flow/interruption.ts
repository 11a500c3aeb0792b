import type { MonoTypeOperatorFunction, Observable, SchedulerLike } from 'rxjs';
import { AsyncSubject, defer, identity, noop, observeOn, of, Subject, tap } from 'rxjs';
import { isRecord } from '../values/json.js';
import { areBlocks, textOf } from '../values/message.js';

/** A polite stop of one call. */
export interface Interrupt {
  /** What the reply says. Default: the partial text, or a short sentence. */
  readonly message?: string;
}

/** Whether one call has been interrupted. */
export interface Interruption {
  /** The interrupt, once there is one. The first one counts. */
  readonly current: Interrupt | undefined;
  /** Emits the interrupt once and completes, also if it came before the subscription. */
  readonly signal$: Observable<Interrupt>;
  /** The same, but also emits an interrupt that is held: what only waits need not wait any longer. */
  readonly asked$: Observable<Interrupt>;
  /** Interrupts, or waits until it may; false if the loop has ended, and nothing is left to interrupt. */
  trigger(interrupt: Interrupt): boolean;
  /** Holds interrupts from now on: what a call did before it was resumed is not cut by what comes now. */
  hold(): void;
  /** Lets an interrupt take effect that was held. One that is given takes precedence over those that came meanwhile. */
  release(first?: Interrupt): void;
  /** The loop has ended. */
  close(): void;
}

export const createInterruption = (): Interruption => {
  const signal$ = new AsyncSubject<Interrupt>();
  const asked$ = new AsyncSubject<Interrupt>();
  const ask = (interrupt: Interrupt): void => {
    asked$.next(interrupt);
    asked$.complete();
  };
  let current: Interrupt | undefined;
  let closed = false;
  let mayCut = true;
  let waiting: Interrupt | undefined;
  const interruptBy = (interrupt: Interrupt): void => {
    if (current !== undefined) return;
    current = interrupt;
    ask(interrupt);
    signal$.next(interrupt);
    signal$.complete();
  };
  return {
    get current() {
      return current;
    },
    signal$,
    asked$,
    trigger: (interrupt) => {
      if (closed) return false;
      if (mayCut) interruptBy(interrupt);
      else {
        waiting ??= interrupt;
        ask(interrupt);
      }
      return true;
    },
    hold: () => {
      mayCut = false;
    },
    release: (first) => {
      mayCut = true;
      const interrupt = first ?? waiting;
      waiting = undefined;
      if (interrupt !== undefined && !closed) interruptBy(interrupt);
    },
    close: () => {
      closed = true;
    },
  };
};

/** Reads what interrupts a call: the reply's text is a string, a `message` that is one, or the text of a message; anything else is only a signal. */
export const toInterrupt = (signal: unknown): Interrupt => {
  if (typeof signal === 'string') return { message: signal };
  if (!isRecord(signal) || signal instanceof Error) return {};
  const { content, message } = signal;
  if (areBlocks(content)) return { message: textOf({ content }) };
  return message === undefined ? {} : toInterrupt(message);
};

/** What must end before a step is cut: the calls below it, so that interrupts work from the inside out, and interceptors after the fact. */
export interface Holds {
  /** Holds a step; call what it returns once. */
  begin(stepId: string): () => void;
  /** Emits once and completes as soon as nothing holds the step. */
  none$(stepId: string): Observable<void>;
}

/** Makes the holds of one call. A tool whose calls have ended by an interrupt gets a moment to make a result of their replies. */
export const createHolds = (scheduler: SchedulerLike): Holds => {
  const held = new Map<string, { count: number; readonly none$: Subject<void> }>();
  return {
    begin: (stepId) => {
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
    none$: (stepId) =>
      defer(() => held.get(stepId)?.none$.pipe(observeOn(scheduler)) ?? of(undefined)),
  };
};

/** Holds a step as long as the source runs, if an interrupt can come. It is subscribed to once. */
export const holding = <T>(
  context: { readonly holds: Holds; readonly isInterruptible?: boolean },
  stepId: string,
): MonoTypeOperatorFunction<T> => {
  const { holds, isInterruptible = true } = context;
  let end = noop;
  const begin = (): void => void (end = holds.begin(stepId));
  return isInterruptible ? tap({ subscribe: begin, finalize: () => end() }) : identity;
};
