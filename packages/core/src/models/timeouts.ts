import { defer, type MonoTypeOperatorFunction, Observable, type Subscription } from 'rxjs';
import { MillraceError, misuse } from '../values/errors.js';
import type { Model, ModelChunk, ModelContext, RetryBudget } from './model.js';
import { isModel } from '../values/options.js';

export const inTime = (model: Model): Model =>
  model.keepsTime === true
    ? model
    : around(
        model,
        (request, context) =>
          defer(() => model.stream$(request, context)).pipe(watched(model.name, context)),
        { keepsTime: true },
      );

/** Errors with `timeout` if a model is silent for too long while demand is open. One timer: one per delta is too slow. */
const watched = (
  name: string,
  { timeouts: { firstChunkMs, chunkMs } = {}, demand, scheduler, report }: ModelContext,
): MonoTypeOperatorFunction<ModelChunk> => {
  if (firstChunkMs === undefined && chunkMs === undefined) return (source) => source;
  const first = {
    ms: firstChunkMs,
    what: `did not start to answer within ${firstChunkMs} ms (firstChunkMs)`,
  };
  const next = {
    ms: chunkMs,
    what: `sent nothing for ${chunkMs} ms in the middle of its answer (chunkMs)`,
  };
  return (source) =>
    new Observable((subscriber) => {
      let limit: Limit | undefined = first;
      let since = scheduler.now();
      let closedAt: number | undefined;
      let looking: Subscription | undefined;
      let isReported = false;

      const look = (): void => {
        looking?.unsubscribe();
        looking = undefined;
        if (closedAt !== undefined || limit === undefined) return;
        const { ms = Infinity, what } = limit;
        const waitedMs = scheduler.now() - since;
        if (waitedMs >= ms) {
          const error = new MillraceError('timeout', `The model '${name}' ${what}.`);
          if (limit === first) silences.add(error);
          subscriber.error(error);
          return;
        }
        if (limit === first && !isReported && waitedMs >= longWaitMs) {
          isReported = true;
          report({ type: 'modelWaiting', model: name, waitedMs });
        }
        const next = limit === first && !isReported ? Math.min(ms, longWaitMs) : ms;
        if (next < Infinity) looking = scheduler.schedule(look, next - waitedMs);
      };
      const turnTo = (other: Limit | undefined): void => {
        if (limit === other) return;
        limit = other;
        look();
      };
      const hear = (chunk: ModelChunk): void => {
        const hasContent = isContent(chunk);
        if (hasContent || chunk.type === 'restart') since = scheduler.now();
        if (chunk.type === 'finish') turnTo(undefined);
        else if (chunk.type === 'restart') turnTo(first);
        else if (hasContent && limit !== undefined) turnTo(next);
        subscriber.next(chunk);
      };
      subscriber.add(() => looking?.unsubscribe());
      subscriber.add(
        demand.open$.subscribe({
          next: (open) => {
            const now = scheduler.now();
            if (!open) closedAt ??= now;
            else if (closedAt !== undefined) {
              since += now - Math.max(closedAt, since);
              closedAt = undefined;
            }
            look();
          },
          error: (error: unknown) => subscriber.error(error),
        }),
      );
      return source.subscribe({
        next: hear,
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
};

export const silences = new WeakSet<object>();

export const isSilence = (error: MillraceError): boolean => silences.has(error);

const longWaitMs = 10_000;

interface Limit {
  readonly ms: number | undefined;
  readonly what: string;
}

/** Wraps a model: replaces `stream$` and keeps the rest. */
export const around = (
  { name, unsupported, keepsTime, toolsInPrompt }: Model,
  stream$: Model['stream$'],
  differences: Partial<Pick<Model, 'unsupported' | 'keepsTime' | 'toolsInPrompt'>> = {},
): Model => ({
  name,
  ...(unsupported === undefined ? {} : { unsupported }),
  ...(keepsTime === undefined ? {} : { keepsTime }),
  ...(toolsInPrompt === undefined ? {} : { toolsInPrompt }),
  ...differences,
  stream$,
});

export const checkModel = (owner: string, model: unknown): void => {
  const [accepts, what] = isModel;
  if (accepts(model)) return;
  const list = Array.isArray(model) ? ' Pass several as arguments, not as a list.' : '';
  throw misuse(`${owner} takes ${what}.${list}`);
};

/** Whether a chunk has content. Heartbeats, empty deltas and usage do not. */
export const isContent = (chunk: ModelChunk): boolean => {
  switch (chunk.type) {
    case 'text':
      return chunk.text !== '';
    case 'thinking':
      return chunk.text !== '' || (chunk.signature ?? chunk.vendorData) !== undefined;
    case 'toolCall':
    case 'citation':
    case 'block':
    case 'malformed':
      return true;
    case 'textStart':
    case 'facts':
    case 'usage':
    case 'restart':
    case 'finish':
      return false;
  }
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
