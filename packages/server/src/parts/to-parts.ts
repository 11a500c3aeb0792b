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
 * Turns the events of calls into what a reader is shown of them. Each root call is a run of its own: it starts,
 * and it ends whatever happens, also when the events stop before it does. Errors complete it: one without an `error` event
 * ends the open runs as failed, and one that comes after their end is only reported. It errors only if no run has started. Of the calls that were
 * under way before the subscription, the one that is heard first begins in its middle: whoever joins a call sees the rest of it.
 * The others are left out; nothing is kept of those that are over.
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

/** What failed, as an error of the call; the message of a foreign error stays in its `cause`. */
export const toCallError = (cause: unknown): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError('unknown', 'The events of the call failed.', { cause });
