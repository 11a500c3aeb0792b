import {
  concatMap,
  defaultIfEmpty,
  identity,
  type MonoTypeOperatorFunction,
  takeUntil,
  timer,
} from 'rxjs';
import type { Context } from './context.js';

/** Waits so many milliseconds before it subscribes, or until the call is interrupted. */
export const heldBack = <T>(
  ms: number,
  { scheduler, interruption }: Pick<Context, 'scheduler' | 'interruption'>,
): MonoTypeOperatorFunction<T> =>
  ms === 0
    ? identity
    : (source) =>
        timer(ms, scheduler).pipe(
          takeUntil(interruption.cut$),
          defaultIfEmpty(0),
          concatMap(() => source),
        );
