import { type AgentEvent, isMillraceError, MillraceError, noUsage } from 'millrace';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  type Observable,
  type OperatorFunction,
} from 'rxjs';
import type { Masks } from '../masks.js';
import type { CallEnd, Part } from './part.js';
import { createRunParts, type RunParts } from './run-parts.js';

/**
 * Converts the events of calls to parts. Each root call is a run that always ends, even if the events stop early. An
 * error without an `error` event ends the open runs as failed, and one after their end is only reported; in both cases
 * the stream completes. It errors only if no run has started. Of the calls that started before the subscription, the
 * first one seen is shown from its middle, so a client that joins a call sees the rest; the others are omitted.
 */
export const toParts =
  (masks: Pick<Masks, 'error'>): OperatorFunction<AgentEvent, Part> =>
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
        if (run.hasEnded()) runs.delete(event.rootId);
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
        masks.error(error);
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

/** Encodes the parts of calls. Always completes: an error, even before any event, ends as the protocol requires. */
export const encodedBy =
  <Chunk extends object>(
    parts: OperatorFunction<AgentEvent, Part>,
    encode: (part: Part) => readonly Chunk[],
  ): OperatorFunction<AgentEvent, Chunk> =>
  (event$) =>
    event$.pipe(
      parts,
      concatMap(encode),
      catchError((cause: unknown) => encode(failure(cause))),
    );

/** The end of a call that failed before its first event. */
const failure = (cause: unknown): Part => ({
  type: 'callEnd',
  by: { callId: '', agent: [] },
  end: { status: 'failed', error: toCallError(cause) },
  usage: noUsage,
});
