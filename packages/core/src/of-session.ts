import { defer, filter, type MonoTypeOperatorFunction } from 'rxjs';
import type { AgentEvent } from './events.js';

/** Lets the events of one session's calls through, and those of all calls below them, whatever session those are in. */
export const ofSession =
  (id: string): MonoTypeOperatorFunction<AgentEvent> =>
  (event$) =>
    defer(() => {
      const running = new Set<string>();
      return event$.pipe(
        filter(({ type, callId, parentId, sessionId }) => {
          const isOurs =
            sessionId === id ||
            running.has(callId) ||
            (parentId !== undefined && running.has(parentId));
          if (isOurs) running.add(callId);
          if (type === 'postCall' || type === 'error') running.delete(callId);
          return isOurs;
        }),
      );
    });
