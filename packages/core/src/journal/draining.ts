import {
  defer,
  firstValueFrom,
  map,
  Observable,
  of,
  race,
  type SchedulerLike,
  Subject,
  take,
  tap,
  timer,
} from 'rxjs';
import { MillraceError } from '../errors.js';
import { checkOptions, having, isDelay } from '../options.js';
import { callStep } from './call-record.js';
import { halting } from './halt.js';
import type { OpenJournal } from './journal.js';

/** How an agent is drained. */
export interface DrainOptions {
  /** How long calls may take to come to a boundary, or to their end, before they are cut, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number;
  /** Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** What became of the calls that ran. */
export interface Drained {
  /** The ids of those that can be resumed: all up to their last step is in their journal. */
  readonly resumable: readonly string[];
  /** How many were cut that have no journal, or had not begun: they are to be made again. */
  readonly lost: number;
}

/** How the calls of an agent are brought to rest, before its process ends. */
export interface Drainable {
  /**
   * Rejects new calls with `busy` and brings running ones to rest: a journaled call ends after its current step with `aborted`, others run to
   * their end; both are cut after `timeoutMs`. Emits the outcome once and completes. Cold; unsubscribing does not reopen the agent.
   */
  readonly drain$: (options?: DrainOptions) => Observable<Drained>;
  /** The Promise form of `drain$`: it begins at once. */
  readonly drain: (options?: DrainOptions) => Promise<Drained>;
}

/** The calls of an agent, in so far as they are to come to rest. */
export interface Draining extends Drainable {
  /** Runs a call, unless the agent is being drained. `callId` is that of one with a journal. */
  readonly track$: <T>(call$: Observable<T>, callId?: string) => Observable<T>;
  /** Lets a step of a call begin only as long as the agent is not being drained. */
  readonly untilDrained: (journal: OpenJournal, callId: string) => OpenJournal;
}

/** Keeps the calls of an agent. */
export const createDraining = (): Draining => {
  const running = new Set<() => void>();
  const idle$ = new Subject<void>();
  const resumable = new Set<string>();
  const begun = new Set<string>();
  let isDraining = false;
  let lost = 0;
  const drain$: Drainable['drain$'] = (options = {}) => {
    checkOptions('drain$()', options, {
      timeoutMs: isDelay,
      scheduler: having('schedule', 'an RxJS scheduler'),
    });
    const { timeoutMs = 30_000, scheduler } = options;
    return defer(() => {
      isDraining = true;
      const late$ = timer(timeoutMs, scheduler).pipe(tap(() => running.forEach((cut) => cut())));
      const rest$: Observable<unknown> = running.size === 0 ? of(0) : race(idle$, late$);
      return rest$.pipe(
        take(1),
        map(() => ({ resumable: [...resumable], lost })),
      );
    });
  };
  return {
    drain$,
    drain: (options) => firstValueFrom(drain$(options)),
    // Nothing of its own stands in the way of events.
    track$: (call$, callId) =>
      new Observable((subscriber) => {
        if (isDraining) {
          subscriber.error(closed());
          return;
        }
        const cut = (): void => {
          const kept = callId !== undefined && begun.has(callId) ? callId : undefined;
          if (kept === undefined) lost += 1;
          else resumable.add(kept);
          subscriber.error(brokenOff(kept));
        };
        running.add(cut);
        subscriber.add(call$.subscribe(subscriber));
        subscriber.add(() => {
          running.delete(cut);
          if (callId !== undefined) begun.delete(callId);
          if (isDraining && running.size === 0) idle$.next();
        });
      }),
    untilDrained: (journal, callId) => ({
      ...journal,
      step$: (id, work) =>
        defer(() => {
          // What it begins with is written down in any case: without that, nobody could go on with it.
          if (id === `${callId}/${callStep}`) {
            return journal.step$(id, work).pipe(tap(() => begun.add(callId)));
          }
          if (!isDraining) return journal.step$(id, work);
          resumable.add(callId);
          throw brokenOff(callId);
        }),
    }),
  };
};

const closed = (): MillraceError =>
  new MillraceError('busy', 'The agent is being shut down, and takes no more calls.', {
    retryable: true,
  });

const brokenOff = (callId: string | undefined): MillraceError =>
  halting(
    callId === undefined
      ? new MillraceError('aborted', 'The agent was shut down before the call had ended.')
      : new MillraceError(
          'aborted',
          `The agent was shut down before the call had ended. Go on with it: resume$('${callId}').`,
          { retryable: true },
        ),
  );
