import { type Model, retry as retryModel, type Tool } from 'millrace';
import { type MonoTypeOperatorFunction, retry, type SchedulerLike, timer } from 'rxjs';
import type { FlowRetry } from './document.js';

const defaultDelayMs = 1_000;

/**
 * Repeats a source that errors. All attempts are within one recorded step, so a resumed call repeats none of those that
 * came after.
 */
export const attempts = <T>(
  policy: FlowRetry | undefined,
  scheduler: SchedulerLike,
  isRetryable: (error: unknown) => boolean = () => true,
): MonoTypeOperatorFunction<T> => {
  if (policy === undefined) return (source) => source;
  const { times, delay_ms = defaultDelayMs } = policy;
  return retry({
    count: times,
    delay: (error: unknown, attempt) => {
      if (!isRetryable(error)) throw error;
      return timer(delay_ms * 2 ** (attempt - 1), scheduler);
    },
  });
};

/** The longest time that the delays of a policy take together, in milliseconds. */
export const totalDelay = (policy: FlowRetry | undefined): number =>
  policy === undefined ? 0 : (policy.delay_ms ?? defaultDelayMs) * (2 ** policy.times - 1);

/** Repeats the requests of a model that fail with a retryable error. */
export const modelWithRetry = (model: Model, policy: FlowRetry | undefined): Model => {
  if (policy === undefined) return model;
  const { times, delay_ms = defaultDelayMs } = policy;
  const maxMs = Math.max(delay_ms * 2 ** (times - 1), 1);
  return retryModel(model, { attempts: times + 1, minMs: delay_ms, maxMs, jitter: 0 });
};

/** Repeats the runs of a tool that fail with an error. */
export const toolWithRetry = (tool: Tool, policy: FlowRetry | undefined): Tool =>
  policy === undefined
    ? tool
    : {
        ...tool,
        run$: (input, context) =>
          tool.run$(input, context).pipe(attempts(policy, context.scheduler)),
      };
