import { defer, ignoreElements, type Observable } from 'rxjs';
import { contained } from './contained.js';
import { failAs } from './fail-as.js';
import { freezeMessage } from './freeze-message.js';
import type { Memory } from './memory.js';
import type { Message, ToolMessage } from './message.js';
import { assertPaired } from './run.js';

/** Writes results that have come later than the turn that asked for them. */
export const rememberResults$ = (memory: Memory, results: ToolMessage): Observable<never> =>
  defer(() => memory.append$([freezeMessage(results)])).pipe(
    contained(),
    failAs('memory', 'The memory could not be written'),
    ignoreElements(),
  );

/** Writes messages, all of them or none, and completes; refuses a tool use that is not with its result. */
export const remember$ = (memory: Memory, messages: readonly Message[]): Observable<never> =>
  defer(() => {
    assertPaired(messages);
    return memory.append$(messages.map(freezeMessage));
  }).pipe(contained(), failAs('memory', 'The memory could not be written'), ignoreElements());
