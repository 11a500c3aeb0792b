import type { MonoTypeOperatorFunction, ObservedValueOf, SchedulerLike } from 'rxjs';
import {
  defer,
  firstValueFrom,
  map,
  noop,
  Observable,
  of,
  race,
  Subject,
  Subscription,
  take,
  tap,
  timer,
} from 'rxjs';
import { bindAsyncContext } from '../flow/async-scope.js';
import { hear } from '../flow/contained.js';
import { deferWork } from '../flow/eventual.js';
import { fatal, isFatal, isMillraceError, MillraceError } from '../values/errors.js';
import type { Layer } from '../seams/layer.js';
import { checkOptions, having, isDelay } from '../values/options.js';
import { callStep } from './call-record.js';
import type { OpenJournal } from './call-store-driver.js';

export interface Drainable {
  /**
   * Rejects new calls with `busy` and drains running ones: a journaled call ends after its current step with `aborted`, others run to
   * their end; both are cut after `timeoutMs`, 30,000 by default. Emits once and completes: `resumable` has the ids of journaled
   * calls, `lost` the number of calls that were cut without a journal or before they started. Cold; unsubscribing does not admit calls again.
   */
  readonly drain$: (options?: {
    readonly timeoutMs?: number | undefined;
    readonly scheduler?: SchedulerLike | undefined;
  }) => Observable<{ readonly resumable: readonly string[]; readonly lost: number }>;
  /** The Promise form of `drain$`. Starts immediately. */
  readonly drain: (
    ...options: Parameters<Drainable['drain$']>
  ) => Promise<ObservedValueOf<ReturnType<Drainable['drain$']>>>;
}

/** Returns a layer that drains the calls of agents and their sub-agents. `journal()` drains its own calls. */
export const draining = (): Layer & Drainable => {
  const { drain$, drain, track$ } = createDraining();
  return {
    name: 'draining',
    record:
      ({ info: { parentId } }) =>
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
    track$: (open, callId) =>
      new Observable((subscriber) => {
        if (isDraining) {
          subscriber.error(closed());
          return;
        }
        let kept: string | undefined;
        const cut = bindAsyncContext(() => {
          if (kept === undefined) lost += 1;
          else resumable.add(kept);
          subscriber.error(shutDown(kept));
        });
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
        // A resume needs the first step. A tool that did not run after its intent would be uncertain.
        if (id === `${callId}/${callStep}`) return journal.step$(id, work).pipe(tap(mark));
        return journal.step$(id, () => {
          if (!isDraining || journal.isWritten?.(`${id}/intent`) === true) return work();
          resumable.add(callId);
          throw shutDown(callId);
        });
      },
    }),
  };
};

const closed = (): MillraceError =>
  new MillraceError('busy', 'The agent is shutting down and accepts no new calls.', {
    retryable: true,
  });

const shutDown = (callId: string | undefined): MillraceError => {
  const how =
    callId === undefined ? '' : ` Resume it with resume$(agent, '${callId}') of its journal.`;
  const message = `The agent was shut down before the call had ended.${how}`;
  return fatal(new MillraceError('aborted', message, { retryable: callId !== undefined }));
};

/** Whether an error ends a drained call: parallel work may end first. */
export const isRest = (error: unknown): error is MillraceError =>
  isFatal(error) && isMillraceError(error) && error.code === 'aborted';

/** As `finalize`, but the source's end waits for an Observable that `work` returns, even a failing one. */
export const ending =
  <T>(work: (cause?: unknown) => unknown): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((to) => {
      const own = new Subscription();
      const end = (notify: (cause?: unknown) => void) => (cause?: unknown) => {
        if (own.closed) return;
        to.remove(leave);
        const passOn = (): void => notify(cause);
        own.add(
          () => void deferWork(() => work(cause)).subscribe({ error: passOn, complete: passOn }),
        );
        own.unsubscribe();
      };
      const leave = end(noop);
      to.add(leave);
      const ended = {
        next: (value: T) => to.next(value),
        error: end((failure) => to.error(failure)),
        complete: end(() => to.complete()),
      };
      hear(source, ended, own);
    });
