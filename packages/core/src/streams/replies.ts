import { map, type OperatorFunction, pipe } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { only } from '../only.js';
import type { Reply } from '../reply.js';
import { type CallsHeard, heard } from './heard.js';

/** Emits the reply of each call when it has ended; a call that fails has none. Ends as the events do. */
export const replies = (options?: CallsHeard): OperatorFunction<AgentEvent, Reply> =>
  pipe(
    heard('replies()', options),
    only('postCall'),
    map(({ reply }) => reply),
  );
