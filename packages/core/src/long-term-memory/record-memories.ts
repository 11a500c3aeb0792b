import { catchError, concatMap, defer, map, of } from 'rxjs';
import { outcome } from '../call/answer.js';
import { messageOf } from '../errors.js';
import type { Layer } from '../layer.js';
import { isArrayOf, isString } from '../shape.js';
import { memoriesOfCall } from './memories-of-call.js';
import { recorded$ } from './memory-access.js';
import type { MemorySettings } from './memory-settings.js';
import type { ScopeInCall } from './scope-in-call.js';

/** Makes the layer that records what came of a call, once its conversation is stored. */
export const recordMemories = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  position: string,
): Layer => ({
  name: 'recordMemories',
  priority: 58,
  call: (context) => (next) => (asked) =>
    next(asked).pipe(
      concatMap((reply) => {
        const { call, perform, hooks, scheduler, local } = context;
        const { memory, timeoutMs } = settings;
        const scope = asked.status === 'prepared' ? scopeIn(context) : undefined;
        if (scope === undefined) return of(reply);
        return perform({
          kind: 'memory',
          id: position,
          input: reply,
          run: () =>
            defer(() => {
              const { run } = local(outcome);
              const memories = memoriesOfCall(call, asked.input, run, reply, settings);
              return memories.length === 0
                ? of([])
                : recorded$({ memory, scope, scheduler, timeoutMs }, memories);
            }).pipe(
              map((entries) => entries.map(({ id }) => id)),
              catchError((error: unknown) => {
                const message = `What came of the call could not be recorded: ${messageOf(error)}`;
                hooks.report(reply.iterations, { type: 'warning', message });
                return of([]);
              }),
            ),
          form: { isWritten: isArrayOf(isString) },
        }).pipe(map(() => reply));
      }),
    ),
});
