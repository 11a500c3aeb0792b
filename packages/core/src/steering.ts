import { AsyncSubject, defer, finalize, type Observable } from 'rxjs';
import type { CallInfo } from './call-info.js';
import { MillraceError } from './errors.js';
import { type Input, readInput } from './input.js';
import type { UserMessage } from './message.js';

/** What became of a message for a running call: the request of this iteration has it, or none has. */
export type SteerOutcome =
  | { readonly status: 'delivered'; readonly iteration: number }
  | {
      readonly status: 'notDelivered';
      /**
       * `notRunning`: the session has no running call, or not the call of that id. `ended`: the call ended before its next turn.
       * `vetoed`: an interceptor of `prepare` would not have it.
       */
      readonly why: 'notRunning' | 'ended' | 'vetoed';
    };

/** Messages that wait for the next turn of one call. */
export interface Steering {
  /** Emits what became of a message, and completes. Cold; whoever leaves before takes it back. */
  steer$(input: Input): Observable<SteerOutcome>;
  /** What waits, in the order in which it was said. It waits until it is settled. */
  waiting(): readonly Steer[];
  /** Tells those who wait, and whoever comes later, that the call has ended. */
  close(): void;
}

/** What somebody has said to a running call. */
export interface Steer {
  readonly messages: readonly UserMessage[];
  readonly settle: (outcome: SteerOutcome) => void;
}

/** Makes the steering of a call. */
export const createSteering = (call: CallInfo): Steering => {
  const waiting = new Set<Steer>();
  let closed = false;
  return {
    steer$: (input) =>
      defer(() => {
        const messages = readSteered(input, call);
        const outcome$ = new AsyncSubject<SteerOutcome>();
        const steer: Steer = {
          messages,
          settle: (outcome) => {
            outcome$.next(outcome);
            outcome$.complete();
          },
        };
        if (closed) steer.settle(ended);
        else waiting.add(steer);
        return outcome$.pipe(finalize(() => waiting.delete(steer)));
      }),
    waiting: () => [...waiting],
    close: () => {
      closed = true;
      waiting.forEach(({ settle }) => settle(ended));
    },
  };
};

/** Reads what a user says to a running call: more input of that call. It gets its place when a turn takes it. */
export const readSteered = (
  input: unknown,
  call: CallInfo,
  place = 'steered',
): readonly UserMessage[] => readInput(input, call, (index) => `${place}/${index}`).map(fromUser);

const ended: SteerOutcome = { status: 'notDelivered', why: 'ended' };

const fromUser = (message: ReturnType<typeof readInput>[number]): UserMessage => {
  if (message.role === 'user') return message;
  throw new MillraceError(
    'invalidRequest',
    `A running call takes messages of the user, not of the role '${message.role}'. Pass a text, content blocks or user messages.`,
  );
};
