import type { AgentEvent } from '@millrace/core';
import { isMillraceError, MillraceError } from '@millrace/core';
import {
  catchError,
  concat,
  concatMap,
  defer,
  from,
  type Observable,
  type OperatorFunction,
  throwError,
} from 'rxjs';
import type { CallEnd, Part } from './part.js';
import { createRunParts, type RunParts } from './run-parts.js';

/**
 * Turns the events of calls into what a reader is shown of them. Each root call is a run of its own: it starts,
 * and it ends whatever happens, also when the events stop before it does. What errors behind an `error` event
 * has been told, and completes; what errors without one ends the open runs, and errors. Of the calls that were
 * under way before the subscription, the one that is heard first begins in its middle: whoever joins a call sees the rest of it.
 * The others are left out; nothing is kept of those that are over.
 */
export const toParts: OperatorFunction<AgentEvent, Part> = (event$) =>
  defer(() => {
    const runs = new Map<string, RunParts>();
    let told: unknown;
    let isFirst = true;

    const take = (event: AgentEvent): readonly Part[] => {
      const run = runs.get(event.rootId) ?? createRunParts(isFirst);
      isFirst = false;
      const parts = run.take(event);
      if (parts.length === 0 && !runs.has(event.rootId)) return parts;
      if (run.hasEnded) runs.delete(event.rootId);
      else runs.set(event.rootId, run);
      if (event.type === 'error') told = event.error;
      return parts;
    };
    const endAll$ = (end: CallEnd): Observable<Part> =>
      defer(() => {
        const open = [...runs.values()];
        runs.clear();
        return from(open.flatMap((run) => run.end(end)));
      });
    const afterError$ = (cause: unknown): Observable<Part> => {
      if (cause === told) return endAll$({ status: 'aborted' });
      const error = isMillraceError(cause) ? cause : unknownError(cause);
      return concat(
        endAll$({ status: 'failed', error }),
        throwError(() => error),
      );
    };
    return concat(event$.pipe(concatMap(take)), endAll$({ status: 'aborted' })).pipe(
      catchError(afterError$),
    );
  });

const unknownError = (cause: unknown): MillraceError =>
  new MillraceError('unknown', 'The events of the call failed.', { cause });
