import type { MonoTypeOperatorFunction, Observable, SchedulerLike } from 'rxjs';
import { AsyncSubject, defer, identity, noop, observeOn, of, Subject, tap } from 'rxjs';
import { isRecord } from '../values/json.js';
import { areBlocks, textOf } from '../values/message.js';

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
  /** The same, but also emits a held interrupt, for steps that only wait. */
  readonly asked$: Observable<Interrupt>;
  /** Interrupts, immediately or when released; false if the loop has ended. */
  trigger(interrupt: Interrupt): boolean;
  /** Holds interrupts from now on: replayed steps must not be cut. */
  hold(): void;
  release(first?: Interrupt): void;
  close(): void;
}

export const createInterruption = (): Interruption => {
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
  return interruption;
};

/** Converts a signal to an interrupt. The text is a string, its `message`, or the text of a message; otherwise none. */
export const toInterrupt = (signal: unknown): Interrupt => {
  if (typeof signal === 'string') return { message: signal };
  if (!isRecord(signal) || signal instanceof Error) return {};
  const { content, message } = signal;
  if (areBlocks(content)) return { message: textOf({ content }) };
  return message === undefined ? {} : toInterrupt(message);
};

/** Work that must end before a step is cut: its sub-agents (from the inside out), and interceptors of its result. */
export interface Holds {
  /** Holds a step; call the returned function once to release it. */
  begin(stepId: string): () => void;
  /** Emits and completes as soon as nothing holds the step. */
  none$(stepId: string): Observable<void>;
}

/** Creates the holds of one call. A tool whose sub-agents were interrupted gets a moment to return a result. */
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

/** Holds a step while the source runs, if the call can be interrupted. Subscribe once. */
export const holding = <T>(
  context: { readonly holds: Holds; readonly isInterruptible?: boolean },
  stepId: string,
): MonoTypeOperatorFunction<T> => {
  const { holds, isInterruptible = true } = context;
  let end = noop;
  const begin = (): void => void (end = holds.begin(stepId));
  return isInterruptible ? tap({ subscribe: begin, finalize: () => end() }) : identity;
};
