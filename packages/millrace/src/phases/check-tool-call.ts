import { isObservable, map, reduce } from 'rxjs';
import { restoreAsyncContext } from '../flow/async-context.js';
import { deadline, type Limits, type Timeouts } from '../flow/deadline.js';
import { atOnce, type Eventual } from '../flow/eventual.js';
import type { OpenRun } from '../run.js';
import type { LoopCall } from '../seams/call.js';
import type { Context } from '../seams/layer.js';
import type { PlannedCall } from '../tools/batch.js';
import type { CheckedUse, ReadyUse, Tool } from '../tools/types.js';
import { isConfigError, revised } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { frozen, type ToolCallBlock } from '../values/message.js';
import { hasInexact } from '../values/exact-json.js';
import { type JsonReading, readJson } from '../values/read-json.js';
import { inexactOf } from '../tools/inexact.js';
import { written } from '../models/tool-parts.js';
import type { Validation } from '../values/schema.js';
import { thrownOutput, type ToolOutput } from '../values/tool-output.js';

/** Validates the input of a tool, within its timeout. */
export const checkInput = (
  { scheduler }: Pick<Context, 'scheduler'>,
  { limits, values }: Pick<LoopCall, 'limits' | 'values'>,
  tool: Tool,
  toolCall: ToolCallBlock,
  plan: PlannedCall,
): Eventual<CheckedUse> => {
  const { name } = tool;
  const extras = name === plan.toolCall.name ? plan.extras : {};
  const read = (validation = noVerdict): CheckedUse =>
    validation.valid
      ? {
          status: 'ready',
          toolCall: repairedCall(toolCall, validation.repaired),
          input: wholeInput(validation),
          value: validation.value,
        }
      : { ...validation, status: 'refused', toolCall, why: invalid(name, validation.problems) };
  const validation = atOnce(tool.validation$(toolCall.input, values, extras));
  if (!isObservable(validation)) return read(validation);
  return validation.pipe(
    restoreAsyncContext(),
    reduce((first: Validation | undefined, each) => first ?? each, undefined),
    deadline(timeoutOf(tool, limits.timeouts), scheduler, `The tool '${name}'`),
    map(read),
  );
};

export const timeoutOf = (
  { name, timeoutMs }: Tool,
  { tools = {}, toolMs }: Timeouts,
): number | undefined => (Object.hasOwn(tools, name) ? tools[name] : (timeoutMs ?? toolMs));

/** Limits were checked for the tool the model named: an interceptor must not swap in a tool they don't cover. */
const mayBecome = (
  tool: Tool,
  { tool: former }: PlannedCall,
  { maxToolCalls }: Pick<Limits, 'maxToolCalls'>,
): boolean =>
  former === undefined
    ? tool.exclusive !== true && maxToolCalls === Infinity
    : tool.exclusive !== true || former.exclusive === true;

/** Why a tool cannot be called as the deciders want it. */
export const obstacleTo = (
  context: Pick<Context, 'hooks'>,
  { toolkit, limits }: Pick<LoopCall, 'limits' | 'toolkit'>,
  run: OpenRun,
  plan: PlannedCall,
  { name, invalidInput }: ToolCallBlock,
  tool: Tool | undefined,
): string | undefined => {
  const isAsPlanned = name === plan.toolCall.name;
  if (tool === undefined) return unknownTool(name, toolkit.current.names);
  if (isAsPlanned && plan.tool === undefined) return notYet(name);
  if (!isAsPlanned && !mayBecome(tool, plan, limits)) return renamed(name);
  return invalidInput === undefined ? undefined : unreadable(context, run, tool, invalidInput);
};

const noVerdict: Validation = { valid: false, problems: ['they have not been checked'] };

const wholeInput = ({
  value,
  input = value,
}: Extract<Validation, { valid: true }>): ReadyUse['input'] => (isRecord(input) ? input : {});

const unknownTool = (name: string, names: readonly string[]): string =>
  names.length === 0
    ? `No tool is named '${name}': there are no tools.`
    : `No tool is named '${name}'. The tools are: ${names.join(', ')}.`;

const notYet = (name: string): string =>
  `Not run: the tool ${name} is available from your next step on. Call it again.`;

const renamed = (name: string): string =>
  `Not run: ${name} must be called by its own name. Call it again.`;

const repairedCall = (toolCall: ToolCallBlock, input: unknown): ToolCallBlock =>
  isRecord(input) ? frozen({ ...toolCall, input }) : toolCall;

export const reportRepair = (
  { hooks }: Pick<Context, 'hooks'>,
  { iteration }: OpenRun,
  before: ToolCallBlock,
  toolCall: ToolCallBlock,
): void => {
  if (toolCall === before) return;
  const [was, is] = [before, toolCall].map(({ input }) => written(input));
  hooks.report(iteration, { type: 'repaired', before: was ?? '', after: is ?? '', toolCall });
};

/** Why arguments could not be read, for the model. */
const unreadable = (
  { hooks }: Pick<Context, 'hooks'>,
  { iteration }: OpenRun,
  { name, inputSchema }: Tool,
  text: string,
): string => {
  const reading = readJson(text);
  const value = 'problem' in reading ? undefined : reading.value;
  if (!isRecord(value) || !hasInexact(value)) return notAnObject(name, text, reading);
  const { problems, warnings } = inexactOf(value, inputSchema, `The tool '${name}'`);
  for (const message of warnings) hooks.report(iteration, { type: 'warning', message });
  return invalid(name, problems);
};

const notAnObject = (name: string, text: string, reading: JsonReading): string => {
  const why = 'problem' in reading ? ` (${reading.problem.slice(0, -1)})` : '';
  return `The arguments for ${name} are not a JSON object: ${text.slice(0, 200)}${why}`;
};

const invalid = (name: string, problems: readonly string[]): string =>
  `The arguments for ${name} are invalid:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;

/** The result for an error of a tool. An error in the program's configuration fails the call: no model can correct it. */
export const failedBy = (name: string, error: unknown): ToolOutput => {
  if (isConfigError(error))
    throw revised(error, { message: `The tool '${name}': ${error.message}` });
  return thrownOutput(error);
};
