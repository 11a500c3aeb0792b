import { map, type OperatorFunction, pipe } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { textOf } from '../message.js';
import { only } from '../only.js';
import type { ToolRun } from '../reply.js';
import { type CallsHeard, heard } from './heard.js';

/**
 * Emits each run of a tool when its result is there, also one that was refused or failed. Its output is whole: what the
 * model and `reply.toolUses` get is cut to `maxObservation`. Ends as the events do.
 */
export const toolRuns = (options?: CallsHeard): OperatorFunction<AgentEvent, ToolRun> =>
  pipe(
    heard('toolRuns()', options),
    only('postActing'),
    map(({ toolUse: { id, name, input }, result, ms }) => ({
      toolUseId: id,
      name,
      input,
      output: textOf(result),
      isError: result.isError,
      ms,
    })),
  );
