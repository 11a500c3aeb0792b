import {
  identity,
  merge,
  mergeMap,
  type MonoTypeOperatorFunction,
  pipe,
  takeUntil,
  throwError,
} from 'rxjs';
import { aborts$ } from './aborts.js';
import type { CallInfo } from './call-info.js';
import type { CallOptions } from './call-options.js';
import type { CallScope } from './call-scope.js';
import { deadline } from './deadline.js';
import { MillraceError } from './errors.js';

/** Errors when the caller aborts, when the tool that makes the call is cut, or when time is up. */
export const stopBy = <T>(
  { signal, parent, timeouts }: CallOptions,
  { call, scheduler }: Pick<CallScope, 'call' | 'scheduler'>,
): MonoTypeOperatorFunction<T> =>
  pipe(
    signal === undefined && parent === undefined
      ? identity
      : takeUntil(
          merge(aborts$(signal), aborts$(parent?.signal)).pipe(
            mergeMap((reason) => throwError(() => abortedError(call, reason))),
          ),
        ),
    deadline(timeouts?.callMs, scheduler, 'The call', 'callMs'),
  );

/** The error of a call that somebody has left. */
export const abortedError = ({ callId }: CallInfo, cause?: unknown): MillraceError =>
  new MillraceError('aborted', `The call '${callId}' was stopped before it ended.`, { cause });
