import type { AgentEvent } from '@millrace/core';
import { isMillraceError, MillraceError } from '@millrace/core';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  noop,
  type Observable,
  type OperatorFunction,
} from 'rxjs';
import type { CallEnd, Part } from './part.js';
import { createRunParts, type RunParts } from './run-parts.js';

/**
 * Converts the events of calls to parts. Each root call is a run that always ends, even if the events stop early. An
 * error without an `error` event ends the open runs as failed, and one after their end is only reported; in both cases
 * the stream completes. It errors only if no run has started. Of the calls that started before the subscription, the
 * first one seen is shown from its middle, so a client that joins a call sees the rest; the others are omitted.
 */
export const toParts =
  (report: (error: MillraceError) => void = noop): OperatorFunction<AgentEvent, Part> =>
  (event$) =>
    defer(() => {
      const runs = new Map<string, RunParts>();
      let shown: MillraceError | undefined;
      let isFirst = true;
      let hasBegun = false;

      const take = (event: AgentEvent): readonly Part[] => {
        const run = runs.get(event.rootId) ?? createRunParts(isFirst);
        isFirst = false;
        const parts = run.take(event);
        if (parts.length === 0 && !runs.has(event.rootId)) return parts;
        hasBegun = true;
        if (run.hasEnded) runs.delete(event.rootId);
        else runs.set(event.rootId, run);
        if (event.type === 'error' && event.parentId === undefined) shown = event.error;
        return parts;
      };
      const endAll$ = (end: CallEnd): Observable<Part> =>
        defer(() => {
          const open = [...runs.values()];
          runs.clear();
          return from(open.flatMap((run) => run.end(end)));
        });
      const afterError$ = (cause: unknown): Observable<Part> => {
        if (shown !== undefined && cause === shown) return endAll$({ status: 'aborted' });
        const error = toCallError(cause);
        if (runs.size > 0) return endAll$({ status: 'failed', error });
        if (!hasBegun) throw error;
        report(error);
        return EMPTY;
      };
      return concat(event$.pipe(concatMap(take)), endAll$({ status: 'aborted' })).pipe(
        catchError(afterError$),
      );
    });

/** Wraps a foreign error, with its message only in the `cause`. */
export const toCallError = (cause: unknown): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError('unknown', 'The events of the call failed.', { cause });
