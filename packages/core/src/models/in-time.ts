import { defer, type MonoTypeOperatorFunction, Observable, type Subscription } from 'rxjs';
import { MillraceError } from '../errors.js';
import type { Model, ModelChunk, ModelContext } from '../model.js';
import { around } from './around.js';
import { isContent } from './is-content.js';

/** Makes a model watch over `context.timeouts`, unless it does so already. */
export const inTime = (model: Model): Model =>
  model.keepsTime === true
    ? model
    : around(
        model,
        (request, context) =>
          defer(() => model.stream$(request, context)).pipe(watched(model.name, context)),
        { keepsTime: true },
      );

/** Errors with `timeout` when a model is silent for too long. The clock stops while demand is closed. One timer checks for silence: one per delta would cost too much. */
const watched = (
  name: string,
  { timeouts: { firstChunkMs, chunkMs } = {}, demand, scheduler }: ModelContext,
): MonoTypeOperatorFunction<ModelChunk> => {
  if (firstChunkMs === undefined && chunkMs === undefined) return (source) => source;
  const first = {
    ms: firstChunkMs,
    what: `did not begin to answer within ${firstChunkMs} ms (firstChunkMs)`,
  };
  const next = { ms: chunkMs, what: `fell silent for ${chunkMs} ms in its answer (chunkMs)` };
  return (source) =>
    new Observable((subscriber) => {
      let limit: Limit | undefined = first;
      let since = scheduler.now();
      let closedAt: number | undefined;
      let looking: Subscription | undefined;

      const look = (): void => {
        looking?.unsubscribe();
        looking = undefined;
        if (closedAt !== undefined || limit?.ms === undefined) return;
        const left = since + limit.ms - scheduler.now();
        if (left <= 0)
          subscriber.error(new MillraceError('timeout', `The model '${name}' ${limit.what}.`));
        else looking = scheduler.schedule(look, left);
      };
      const turnTo = (other: Limit | undefined): void => {
        if (limit === other) return;
        limit = other;
        look();
      };
      const hear = (chunk: ModelChunk): void => {
        const says = isContent(chunk);
        if (says || chunk.type === 'restart') since = scheduler.now();
        if (chunk.type === 'finish') turnTo(undefined);
        else if (chunk.type === 'restart') turnTo(first);
        else if (says && limit !== undefined) turnTo(next);
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

interface Limit {
  readonly ms: number | undefined;
  readonly what: string;
}
