import { type ToolCallBlock, frozen } from '../values/message.js';
import type { OpenRun } from '../run.js';
import type { Context } from '../seams/layer.js';
import type { LoopCall } from '../seams/call.js';
import { meantName } from '../values/meant-name.js';
import { readJson } from '../values/read-json.js';
import { isRecord } from '../values/json.js';
import { hasInexact } from '../values/exact-json.js';

/** The tool call with the name and the arguments that the model means, if it wrote them in another form. */
export const readToolCall = (
  given: ToolCallBlock,
  run: OpenRun,
  { hooks }: Context,
  { toolkit }: LoopCall,
): ToolCallBlock => {
  const { iteration } = run;
  const name = meantName(given.name, (it) => toolkit.current.find(it) !== undefined);
  const toolCall = name === given.name ? given : frozen({ ...given, name });
  if (toolCall !== given) {
    hooks.report(iteration, { type: 'repaired', before: given.name, after: name, toolCall });
  }
  const { invalidInput, ...use } = toolCall;
  if (invalidInput === undefined) return toolCall;
  const reading = readJson(invalidInput);
  if ('problem' in reading || !isRecord(reading.value) || hasInexact(reading.value))
    return toolCall;
  const read = frozen({ ...use, input: reading.value });
  if (reading.repair)
    hooks.report(iteration, { type: 'repaired', toolCall: read, ...reading.repair });
  return read;
};
