import type { ObservedValueOf, SchedulerLike } from 'rxjs';
import { defer, firstValueFrom, map, Observable, of, race, Subject, take, tap, timer } from 'rxjs';
import { fatal, isFatal, isMillraceError, MillraceError } from '../values/errors.js';
import type { Layer } from '../seams/layer.js';
import { checkOptions, having, isDelay } from '../values/options.js';
import { callStep } from './call-record.js';
import type { OpenJournal } from './call-store-driver.js';

/** How calls are brought to rest before their process ends. */
export interface Drainable {
  /**
   * Rejects new calls with `busy` and brings running ones to rest: a journaled call ends after its current step with `aborted`, others run to
   * their end; both are cut after `timeoutMs`, 30,000 by default. Emits once and completes: `resumable` are the ids of calls that a journal has up to their last step, `lost`
   * is the number of calls that were cut without one, or before they began. Cold; unsubscribing does not admit calls again.
   */
  readonly drain$: (options?: {
    readonly timeoutMs?: number;
    readonly scheduler?: SchedulerLike;
  }) => Observable<{ readonly resumable: readonly string[]; readonly lost: number }>;
  /** The Promise form of `drain$`; starts at once. */
  readonly drain: (
    ...options: Parameters<Drainable['drain$']>
  ) => Promise<ObservedValueOf<ReturnType<Drainable['drain$']>>>;
}

/** Returns a layer that can bring the calls of its agents to rest, those of sub-agents with them. It is for agents without a journal: `journal()` drains its own calls. */
export const draining = (): Layer & Drainable => {
  const { drain$, drain, track$ } = createDraining();
  return {
    name: 'draining',
    open:
      ({ call: { parentId } }) =>
      (call$) =>
        parentId === undefined ? track$(() => call$) : call$,
    drain$,
    drain,
  };
};

export interface RunningCalls extends Drainable {
  readonly track$: <T>(open: (mark: () => void) => Observable<T>, callId?: string) => Observable<T>;
  readonly untilDrained: (journal: OpenJournal, callId: string, mark: () => void) => OpenJournal;
}

export const createDraining = (): RunningCalls => {
  const running = new Set<() => void>();
  const idle$ = new Subject<void>();
  const resumable = new Set<string>();
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
    track$: (open, callId) =>
      new Observable((subscriber) => {
        if (isDraining) {
          subscriber.error(closed());
          return;
        }
        let kept: string | undefined;
        const cut = (): void => {
          if (kept === undefined) lost += 1;
          else resumable.add(kept);
          subscriber.error(brokenOff(kept));
        };
        running.add(cut);
        subscriber.add(
          open(() => {
            kept = callId;
          }).subscribe(subscriber),
        );
        subscriber.add(() => {
          running.delete(cut);
          if (isDraining && running.size === 0) idle$.next();
        });
      }),
    untilDrained: (journal, callId, mark) => ({
      ...journal,
      step$: (id, work) => {
        // What it begins with is recorded in any case: without that, it could not be resumed.
        if (id === `${callId}/${callStep}`) return journal.step$(id, work).pipe(tap(mark));
        return journal.step$(id, () => {
          if (!isDraining) return work();
          resumable.add(callId);
          throw brokenOff(callId);
        });
      },
    }),
  };
};

const closed = (): MillraceError =>
  new MillraceError('busy', 'The agent is being shut down, and takes no more calls.', {
    retryable: true,
  });

const brokenOff = (callId: string | undefined): MillraceError => {
  const how =
    callId === undefined ? '' : ` Resume it with resume$(agent, '${callId}') of its journal.`;
  const message = `The agent was shut down before the call had ended.${how}`;
  return fatal(new MillraceError('aborted', message, { retryable: callId !== undefined }));
};

/** Whether an error ends a call because it comes to rest: what runs beside it may end first. */
export const isRest = (error: unknown): error is MillraceError =>
  isFatal(error) && isMillraceError(error) && error.code === 'aborted';
