import { defer, ignoreElements, type Observable } from 'rxjs';
import { contained } from './contained.js';
import { failAs } from './fail-as.js';
import { freezeMessage } from './freeze-message.js';
import type { Memory } from './memory.js';
import type { Message, ToolMessage } from './message.js';
import { assertPaired } from './run.js';

/**
 * Writes messages, all of them or none, and completes; refuses a tool use that is not with its result. Before them go results that have come
 * later than the turn that asked for them.
 */
export const remember$ = (
  memory: Memory,
  messages: readonly Message[],
  late: readonly ToolMessage[] = [],
): Observable<never> =>
  defer(() => {
    assertPaired(messages);
    return memory.append$([...late, ...messages].map(freezeMessage));
  }).pipe(contained(), failAs('memory', 'The memory could not be written'), ignoreElements());
