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
  { timeouts: { firstChunkMs, chunkMs } = {}, demand, scheduler, report }: ModelContext,
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

const silences = new WeakSet<object>();

export const isSilence = (error: MillraceError): boolean => silences.has(error);

const longWaitMs = 10_000;

interface Limit {
  readonly ms: number | undefined;
  readonly what: string;
}
