import { catchError, concatMap, defer, map, of } from 'rxjs';
import { messageOf } from '../errors.js';
import { isArrayOf, isString } from '../shape.js';
import type { CallStage } from '../pipeline/call-stage.js';
import { replyOf, runOf } from '../pipeline/review-reply.js';
import type { MemorySettings } from './memory-settings.js';
import { memoriesOfCall } from './memories-of-call.js';
import { recorded$ } from './memory-access.js';
import type { ScopeInCall } from './scope-in-call.js';

/** Makes the stage that records what came of a call, once its conversation is stored. */
export const recordStage = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  position: string,
): CallStage => {
  const recordMemories: CallStage = (context) =>
    concatMap((state) => {
      const { iteration } = runOf(state, 'recordMemories');
      const reply = replyOf(state, 'recordMemories');
      const { call, perform, hooks, scheduler, scope: own } = context;
      const { memory, timeoutMs } = settings;
      const scope =
        state.status === 'prepared' ? scopeIn({ call, hooks, values: own.values }) : undefined;
      if (scope === undefined) return of(state);
      return perform({
        kind: 'memory',
        id: position,
        input: reply,
        run: () =>
          defer(() => {
            const memories = memoriesOfCall(call, state, reply, settings);
            return memories.length === 0
              ? of([])
              : recorded$({ memory, scope, scheduler, timeoutMs }, memories);
          }).pipe(
            map((entries) => entries.map(({ id }) => id)),
            catchError((error: unknown) => {
              const message = `What came of the call could not be recorded: ${messageOf(error)}`;
              hooks.report(iteration, { type: 'warning', message });
              return of([]);
            }),
          ),
        form: { isWritten: isArrayOf(isString) },
      }).pipe(map(() => state));
    });
  return recordMemories;
};
