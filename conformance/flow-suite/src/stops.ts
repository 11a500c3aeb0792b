import type { CallOptions } from 'millrace';
import type { Session } from 'millrace/sessions';
import { filter, firstValueFrom, map } from 'rxjs';
import { outcomeOf } from './outcome-of.js';

/** A call that has been begun, and how it is stopped. */
export interface Stoppable {
  readonly stop: () => void;
  /** Resolves when whoever made the call hears that it has ended, to the word for how. */
  readonly settled: Promise<string>;
}

/** Begins a call that can be stopped in one way. */
export const stops = {
  unsubscribe: (session: Session, options?: CallOptions): Stoppable => {
    // Whoever unsubscribes is told nothing: that the call is over is an event of its session.
    const settled = firstValueFrom(
      session.events$.pipe(
        filter((event) => event.type === 'error'),
        map(({ error }) => error.code),
      ),
    );
    const subscription = session.stream$(question, options).subscribe();
    return { settled, stop: () => subscription.unsubscribe() };
  },
  AbortSignal: (session: Session, options?: CallOptions): Stoppable => {
    const abort = new AbortController();
    return {
      settled: outcomeOf(session.call(question, { ...options, signal: abort.signal })),
      stop: () => abort.abort(),
    };
  },
  interrupt: (session: Session, options?: CallOptions): Stoppable => ({
    settled: outcomeOf(session.call(question, options)),
    stop: () => session.interrupt(),
  }),
};

/** A way to stop a call. */
export type Stop = keyof typeof stops;

/** All ways to stop a call. */
export const stopNames: readonly Stop[] = ['unsubscribe', 'AbortSignal', 'interrupt'];

/** How a call ends that is stopped in each way. */
export const ends: Readonly<Record<Stop, string>> = {
  unsubscribe: 'aborted',
  AbortSignal: 'aborted',
  interrupt: 'interrupted',
};

const question = 'Go on for ever.';
