import { defer, Observable, type SchedulerLike, type Subscription } from 'rxjs';
import { MillraceError, misuse } from '../values/errors.js';
import type { Model, ModelChunk, ModelContext, ModelRequest, RetryBudget } from './model.js';
import { isModel } from '../values/options.js';
import { aroundModel, hasContent } from './around-model.js';

/** Wraps a model so that it enforces the timeouts of its calls. A model that does so already is returned. */
export const inTime = (model: Model): Model =>
  model.keepsTime === true
    ? model
    : aroundModel(model, (request, context) => defer(() => watched$(model, request, context)), {
        keepsTime: true,
      });

/** How long a model may work unseen by default, in milliseconds: on reasoning, or a tool of the vendor. */
const defaultBusyMs = 600_000;

/** Errors with `timeout` if a model is silent for too long while demand is open. One timer: one per delta is too slow. */
const watched$ = (
  model: Model,
  request: ModelRequest,
  context: ModelContext,
): Observable<ModelChunk> => {
  const { timeouts = {}, demand } = context;
  if (Object.values(timeouts).every((ms) => ms === undefined)) {
    return model.stream$(request, context);
  }
  return new Observable((subscriber) => {
    const silence = createSilence(model.name, context, (error) => subscriber.error(error));
    subscriber.add(() => silence.end());
    subscriber.add(
      demand.open$.subscribe({
        next: (open) => silence.pause(!open),
        error: (error: unknown) => subscriber.error(error),
      }),
    );
    const working = (on: string): void => {
      silence.working(on);
      context.working?.(on);
    };
    return model.stream$(request, { ...context, working }).subscribe({
      next: (chunk) => {
        silence.hear(chunk);
        subscriber.next(chunk);
      },
      error: (error: unknown) => subscriber.error(error),
      complete: () => subscriber.complete(),
    });
  });
};

/** Measures how long a model is silent. `working`: it shows no content, but signs of work, which have a limit of their own. */
const createSilence = (
  name: string,
  { timeouts: { firstChunkMs, chunkMs, busyMs = defaultBusyMs } = {}, ...context }: ModelContext,
  fail: (error: MillraceError) => void,
) => {
  const { scheduler, report } = context;
  const first = {
    ms: firstChunkMs,
    what: `did not start to answer within ${firstChunkMs} ms (firstChunkMs)`,
  };
  const next = {
    ms: chunkMs,
    what: `sent nothing for ${chunkMs} ms in the middle of its answer (chunkMs)`,
  };
  let limit: Limit | undefined = first;
  const timer = createTimer(scheduler);
  /** When it was last heard, and when it last showed content. */
  let heardAt = timer.now();
  let contentAt = heardAt;
  let on: string | undefined;
  let closedAt: number | undefined;
  let isReported = false;
  let isOver = false;

  const overdue = (heardMs: number, waitedMs: number): MillraceError | undefined => {
    if (heardMs >= (limit?.ms ?? Infinity)) {
      const error = new MillraceError('timeout', `The model '${name}' ${limit?.what}.`);
      if (limit === first) silences.add(error);
      return error;
    }
    if (on === undefined || waitedMs < busyMs) return undefined;
    // A retry would pay for the same work again.
    const what = `worked for ${busyMs} ms without content, on: ${on} (busyMs)`;
    return new MillraceError('timeout', `The model '${name}' ${what}.`, { retryable: false });
  };
  const look = (): void => {
    if (isOver || closedAt !== undefined || limit === undefined) {
      timer.stop();
      return;
    }
    const now = timer.now();
    const [heardMs, waitedMs] = [now - heardAt, now - contentAt];
    const error = overdue(heardMs, waitedMs);
    if (error !== undefined) {
      fail(error);
      return;
    }
    const isReportable = limit === first || on !== undefined;
    if (isReportable && !isReported && waitedMs >= longWaitMs) {
      isReported = true;
      report({ type: 'modelWaiting', model: name, waitedMs, ...(on !== undefined && { on }) });
    }
    const waitMs = Math.min(
      (limit.ms ?? Infinity) - heardMs,
      on === undefined ? Infinity : busyMs - waitedMs,
      isReportable && !isReported ? longWaitMs - waitedMs : Infinity,
    );
    timer.within(waitMs, look);
  };
  const turnTo = (other: Limit | undefined): void => {
    if (limit === other) return;
    limit = other;
    look();
  };
  return {
    // A model may report work in the same tick in which one of its chunks led to an interrupt.
    end: (): void => {
      isOver = true;
      timer.stop();
    },
    pause: (isPaused: boolean): void => {
      const now = timer.now();
      if (isPaused) closedAt ??= now;
      else if (closedAt !== undefined) {
        heardAt += now - Math.max(closedAt, heardAt);
        contentAt += now - Math.max(closedAt, contentAt);
        closedAt = undefined;
      }
      look();
    },
    working: (what: string): void => {
      heardAt = timer.now();
      if (on !== undefined) return;
      on = what;
      look();
    },
    hear: (chunk: ModelChunk): void => {
      const isContent = hasContent(chunk);
      if (isContent || chunk.type === 'restart') {
        heardAt = contentAt = timer.now();
        on = undefined;
        isReported = false;
      }
      if (chunk.type === 'finish') turnTo(undefined);
      else if (chunk.type === 'restart') turnTo(first);
      else if (isContent && limit !== undefined) turnTo(next);
    },
  };
};

/**
 * One timer, and a clock that follows it: a clock that is set, and a process that stands still, add up to what the timer had left.
 */
const createTimer = (scheduler: SchedulerLike) => {
  let [passed, readAt, end] = [0, scheduler.now(), Infinity];
  let waiting: Subscription | undefined;
  const now = (): number => {
    const at = scheduler.now();
    passed = Math.min(passed + Math.max(0, at - readAt), end);
    readAt = at;
    return passed;
  };
  const stop = (): void => {
    now();
    waiting?.unsubscribe();
    end = Infinity;
  };
  return {
    /** In milliseconds since its creation. */
    now,
    stop,
    /** Works after a time, or earlier, if the timer is set: one for each delta would be slow. */
    within: (ms: number, work: () => void): void => {
      if (now() + ms >= end) return;
      stop();
      end = passed + ms;
      waiting = scheduler.schedule(() => {
        [passed, readAt, end] = [end, scheduler.now(), Infinity];
        work();
      }, ms);
    },
  };
};

export const silences = new WeakSet<object>();

export const isSilence = (error: MillraceError): boolean => silences.has(error);

const longWaitMs = 10_000;

interface Limit {
  readonly ms: number | undefined;
  readonly what: string;
}

export const checkModel = (owner: string, model: unknown): void => {
  const [accepts, what] = isModel;
  if (accepts(model)) return;
  const list = Array.isArray(model) ? ' Pass several as arguments, not as a list.' : '';
  throw misuse(`${owner} takes ${what}.${list}`);
};

export const createRetryBudget = (requests: number): RetryBudget => {
  let left = requests;
  return {
    take: () => {
      if (left <= 0) return false;
      left -= 1;
      return true;
    },
  };
};
