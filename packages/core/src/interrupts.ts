import { catchError, defer, EMPTY, ignoreElements, map, type Observable, tap } from 'rxjs';
import { contained } from './contained.js';
import { toMillraceError } from './errors.js';
import type { Hooks } from './hooks.js';
import { type Interruption, toInterrupt } from './interruption.js';

/** Interrupts a call when `interruptOn` says so, and emits nothing. One that errors is announced, and the call goes on. */
export const interrupts$ = (
  interruptOn: Observable<unknown> | undefined,
  interruption: Interruption,
  hooks: Pick<Hooks, 'report' | 'iteration'>,
): Observable<never> => {
  if (interruptOn === undefined) return EMPTY;
  const passOver = (cause: unknown): Observable<never> => {
    const error = toMillraceError(cause);
    const handler = { of: 'interruptOn', name: 'interruptOn' };
    hooks.report(hooks.iteration(), { type: 'handlerError', ...handler, error });
    return EMPTY;
  };
  return defer(() => interruptOn).pipe(
    contained(),
    map(toInterrupt),
    catchError(passOver),
    tap((interrupt) => interruption.trigger(interrupt)),
    ignoreElements(),
  );
};
