import {
  defer,
  fromEvent,
  identity,
  map,
  merge,
  mergeMap,
  NEVER,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  pipe,
  share,
  take,
  takeUntil,
  throwError,
} from 'rxjs';
import type { CallInfo } from '../values/reply.js';
import type { CallOptions } from './call-options.js';
import type { Context } from '../seams/layer.js';
import { restoreAsyncContext } from '../flow/async-context.js';
import { deadline } from '../flow/deadline.js';
import { MillraceError } from '../values/errors.js';
import { uncounted } from '../step.js';

const defaultCallMs = 30 * 60_000;

/** Errors if the caller aborts, the parent's tool call is cut, or the call times out. */
export const abortWhen = <T>(
  { signal, parent, limits }: CallOptions,
  { info, scheduler, local }: Pick<Context, 'info' | 'scheduler' | 'local'>,
): MonoTypeOperatorFunction<T> =>
  pipe(
    signal === undefined && parent === undefined
      ? identity
      : takeUntil(
          merge(aborts$(signal), aborts$(parent?.signal)).pipe(
            mergeMap((reason) => throwError(() => abortedError(info, reason))),
          ),
        ),
    deadline(
      limits?.timeouts?.callMs ?? (parent === undefined ? defaultCallMs : undefined),
      scheduler,
      'The call',
      'callMs',
      local(uncounted),
    ),
  );

export const abortedError = ({ callId }: CallInfo, cause?: unknown): MillraceError =>
  new MillraceError('aborted', `The call '${callId}' was aborted.`, { cause });

const shared = new WeakMap<AbortSignal, Observable<unknown>>();

/** Emits the reason of a signal once, even if it aborted earlier; never without a signal. */
const aborts$ = (signal: AbortSignal | undefined): Observable<unknown> =>
  signal === undefined
    ? NEVER
    : defer(() =>
        (signal.aborted ? of(signal.reason) : listening$(signal)).pipe(
          take(1),
          restoreAsyncContext(),
        ),
      );

const listening$ = (signal: AbortSignal): Observable<unknown> => {
  const known = shared.get(signal);
  if (known !== undefined) return known;
  const created = fromEvent(signal, 'abort').pipe(
    map((): unknown => signal.reason),
    share(),
  );
  shared.set(signal, created);
  return created;
};
