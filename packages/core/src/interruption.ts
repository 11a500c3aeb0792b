import { AsyncSubject, type Observable } from 'rxjs';

/** A polite stop of one call. */
export interface Interrupt {
  /** What the reply says. Default: the partial text, or a short sentence. */
  readonly message?: string;
}

/** Whether one call has been interrupted, and what it then cuts. */
export interface Interruption {
  /** The interrupt, once there is one. The first one counts. */
  readonly current: Interrupt | undefined;
  /** Emits the interrupt once, also when it came before the subscription: cuts what the call waits for. */
  readonly cut$: Observable<Interrupt>;
  /** As `cut$`, but a moment earlier: a sub-agent can end politely before its parent stops listening. */
  readonly descend$: Observable<Interrupt>;
  /** Interrupts, or waits until it may; false when the loop has ended, and nothing is left to interrupt. */
  trigger(interrupt: Interrupt): boolean;
  /** What was held waits no longer. An interrupt that is given goes before those that came meanwhile. */
  release(first?: Interrupt): void;
  /** Says that the loop has ended. */
  close(): void;
}

/** Makes the interruption of one call. One that is held waits: what a call has done before it was broken off is not cut by what comes now. */
export const createInterruption = (isHeld = false): Interruption => {
  const descend$ = new AsyncSubject<Interrupt>();
  const cut$ = new AsyncSubject<Interrupt>();
  let current: Interrupt | undefined;
  let closed = false;
  let mayCut = !isHeld;
  let waiting: Interrupt | undefined;
  const cut = (interrupt: Interrupt): void => {
    if (current !== undefined) return;
    current = interrupt;
    for (const told$ of [descend$, cut$]) {
      told$.next(interrupt);
      told$.complete();
    }
  };
  return {
    get current() {
      return current;
    },
    cut$,
    descend$,
    trigger: (interrupt) => {
      if (closed) return false;
      if (mayCut) cut(interrupt);
      else waiting ??= interrupt;
      return true;
    },
    release: (first) => {
      mayCut = true;
      const interrupt = first ?? waiting;
      waiting = undefined;
      if (interrupt !== undefined && !closed) cut(interrupt);
    },
    close: () => {
      closed = true;
    },
  };
};

/** Reads what an `interruptOn` emitted: a string is the reply's text, anything else only a signal. */
export const toInterrupt = (signal: unknown): Interrupt =>
  typeof signal === 'string' ? { message: signal } : {};
