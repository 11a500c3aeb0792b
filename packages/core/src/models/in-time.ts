import {
  BehaviorSubject,
  combineLatest,
  concat,
  defer,
  EMPTY,
  ignoreElements,
  type MonoTypeOperatorFunction,
  NEVER,
  type Observable,
  of,
  repeat,
  type SchedulerLike,
  switchMap,
  takeUntil,
  tap,
  throwError,
  timer,
} from 'rxjs';
import type { Demand } from '../demand.js';
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

/** Errors with `timeout` when a model is silent for too long. The clock stands still while demand is closed. */
const watched = (
  name: string,
  { timeouts: { firstChunkMs, chunkMs } = {}, demand, scheduler }: ModelContext,
): MonoTypeOperatorFunction<ModelChunk> => {
  if (firstChunkMs === undefined && chunkMs === undefined) return (source) => source;
  return (source) =>
    defer(() => {
      const silence = createSilence(scheduler);
      const first = limitOf(
        firstChunkMs,
        (ms) => `did not begin to answer within ${ms} ms (firstChunkMs)`,
      );
      const next = limitOf(chunkMs, (ms) => `fell silent for ${ms} ms in its answer (chunkMs)`);
      const limit$ = new BehaviorSubject(first);
      const hear = (chunk: ModelChunk): void => {
        if (isContent(chunk) || chunk.type === 'restart') silence.begin();
        const limit = limitBehind(chunk, limit$.value);
        if (limit !== limit$.value) limit$.next(limit);
      };
      const limitBehind = (chunk: ModelChunk, limit: Limit | undefined): Limit | undefined => {
        if (chunk.type === 'finish') return undefined;
        if (chunk.type === 'restart') return first;
        return isContent(chunk) ? next : limit;
      };
      const overdue$ = combineLatest([limit$, silence.follow$(demand)]).pipe(
        switchMap(([limit, open]) =>
          limit === undefined || !open ? NEVER : silence.lasts$(limit, name),
        ),
      );
      return source.pipe(tap(hear), takeUntil(overdue$));
    });
};

/** How long a silence may last, and what is said of a longer one. */
interface Limit {
  readonly ms: number;
  readonly what: string;
}

const limitOf = (ms: number | undefined, describe: (ms: number) => string): Limit | undefined =>
  ms === undefined ? undefined : { ms, what: describe(ms) };

/** Measures a silence: one timer that looks when it is due, because a new one for each chunk would cost too much. */
const createSilence = (scheduler: SchedulerLike) => {
  let since = scheduler.now();
  let closedAt: number | undefined;
  const left = (limit: number): number => since + limit - scheduler.now();
  return {
    begin: (): void => {
      since = scheduler.now();
    },
    /** Emits the demand, and leaves out the time that it is closed. */
    follow$: ({ open$ }: Demand): Observable<boolean> =>
      open$.pipe(
        tap((open) => {
          const now = scheduler.now();
          if (!open) closedAt ??= now;
          else if (closedAt !== undefined) {
            since += now - Math.max(closedAt, since);
            closedAt = undefined;
          }
        }),
      ),
    /** Errors once the silence has lasted for so long. */
    lasts$: ({ ms, what }: Limit, name: string): Observable<never> =>
      concat(
        defer(() => timer(Math.max(0, left(ms)), scheduler)).pipe(
          repeat({ delay: () => (left(ms) > 0 ? of(true) : EMPTY) }),
          ignoreElements(),
        ),
        throwError(() => new MillraceError('timeout', `The model '${name}' ${what}.`)),
      ),
  };
};
