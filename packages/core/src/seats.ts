import { MillraceError } from './errors.js';
import type { Interruption } from './interruption.js';

/** The one place that a session has for a running call. */
export interface Seat {
  readonly sessionId: string;
  /** Takes the place, or throws `busy`; returns what gives it back, which may be called twice. */
  take(callId: string, interruption: Interruption): () => void;
}

/** The running calls of an agent's sessions. A session is in it only while a call of its runs. */
export interface Seats {
  seatOf(sessionId: string): Seat;
  /** Interrupts the running call of a session, or this one only; false when it does not run. */
  interrupt(sessionId: string, message: string | undefined, callId: string | undefined): boolean;
}

/** Makes the seats of one agent. */
export const createSeats = (): Seats => {
  const running = new Map<
    string,
    { readonly callId: string; readonly interruption: Interruption }
  >();
  return {
    seatOf: (sessionId) => ({
      sessionId,
      take: (callId, interruption) => {
        if (running.has(sessionId)) {
          throw new MillraceError(
            'busy',
            `The session '${sessionId}' is busy with another call. Wait until that has ended, or interrupt it.`,
          );
        }
        const taken = { callId, interruption };
        running.set(sessionId, taken);
        return () => {
          if (running.get(sessionId) === taken) running.delete(sessionId);
        };
      },
    }),
    interrupt: (sessionId, message, callId) => {
      const taken = running.get(sessionId);
      if (taken === undefined || (callId !== undefined && callId !== taken.callId)) return false;
      return taken.interruption.trigger(message === undefined ? {} : { message });
    },
  };
};
