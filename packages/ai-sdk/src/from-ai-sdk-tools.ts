import {
  type ApprovalRequest,
  type Approver,
  MillraceError,
  requireApproval,
  suspend,
  type Tool,
  tool,
  type ToolContext,
  type Verdict,
} from 'millrace';
import { checkOptions, isFunction, isRecord } from 'millrace/values';
import { from, mergeMap, type Observable, of } from 'rxjs';
import type { AiSdkTool } from './provider-types.js';
import { toToolOutput } from './tool-output.js';
import { toInputSchema, unusable } from './tool-schema.js';

/** Options of `fromAiSdkTools`. */
export interface FromAiSdkToolsOptions {
  /** Decides on calls of tools with `needsApproval`. Default: these calls are denied. */
  readonly approve?: Approver | undefined;
}

/**
 * Makes tools of the AI SDK, also those of its MCP client, tools of Millrace: `fromAiSdkTools(await mcp.tools())`.
 *
 * `execute` gets `toolCallId`, an empty list of `messages` and an `abortSignal`; the values of an AsyncIterable are progress, and the last
 * one is the output. Without `execute`, a call is suspended until `toolResults` brings its result. Throws `config` for a tool that cannot be
 * used, such as one that a vendor runs: pass that to `builtInTools` of `aiSdkModel`.
 */
export const fromAiSdkTools = (
  tools: Readonly<Record<string, AiSdkTool>>,
  options: FromAiSdkToolsOptions = {},
): readonly Tool[] => {
  checkTools(tools);
  checkOptions('fromAiSdkTools()', options, { approve: isFunction });
  return Object.entries(tools).map(([name, it]) => toTool(name, it, options.approve));
};

/** A list would name its tools by numbers, and a Promise has no tools yet. */
const checkTools = (tools: unknown): void => {
  const isPromise = isRecord(tools) && isCallable(tools['then']);
  if (isRecord(tools) && !isPromise) return;
  throw new MillraceError(
    'config',
    `fromAiSdkTools() takes tools by name${isPromise ? ', not a Promise: await it' : ''}. Examples: fromAiSdkTools({ weather }), fromAiSdkTools(await mcp.tools()).`,
  );
};

const toTool = (name: string, given: AiSdkTool, approve: Approver | undefined): Tool => {
  if (!isRecord(given)) throw unusable(name, 'it is no tool');
  const { type, execute, needsApproval, description, inputSchema } = given;
  if (type === 'provider' || type === 'provider-defined') {
    throw unusable(name, "the vendor defines it: pass it to 'builtInTools' of aiSdkModel()");
  }
  const made = tool({
    name,
    description: typeof description === 'string' && description !== '' ? description : name,
    input: toInputSchema(inputSchema, name),
    run: (input, context) =>
      isCallable(execute) ? executed(execute, given, input, context) : suspend(),
  });
  return withApproval(made, needsApproval, approve);
};

/** Runs a tool: each value of an AsyncIterable is progress, and the last one is the output. */
async function* executed(
  execute: CallableFunction,
  given: AiSdkTool,
  input: unknown,
  context: ToolContext,
): AsyncGenerator<unknown, unknown> {
  const returned: unknown = Reflect.apply(execute, given, [input, executionOf(context)]);
  let output: unknown;
  if (isAsyncIterable(returned)) {
    for await (const value of returned) {
      output = value;
      yield value;
    }
  } else output = await returned;
  const { toModelOutput } = given;
  if (!isCallable(toModelOutput)) return output;
  const { toolCallId } = context;
  const shown: unknown = await Reflect.apply(toModelOutput, given, [{ toolCallId, input, output }]);
  return toToolOutput(shown, output);
}

/** The second argument of `execute` and `needsApproval` of the AI SDK. */
const executionOf = ({ toolCallId, signal }: ToolContext): object => ({
  toolCallId,
  messages: [],
  abortSignal: signal,
  context: {},
});

const withApproval = (made: Tool, needs: unknown, approve: Approver | undefined): Tool => {
  if (needs === undefined || needs === false) return made;
  if (!isCallable(needs)) return requireApproval(made, approve ?? false);
  const decide: Approver = (request) => {
    const asked = Promise.resolve<unknown>(
      Reflect.apply(needs, undefined, [request.value, executionOf(request.context)]),
    );
    return from(asked).pipe(
      mergeMap((isNeeded) => (isNeeded === false ? of(true) : decisions$(request, approve))),
    );
  };
  return requireApproval(made, decide);
};

const decisions$ = (
  request: ApprovalRequest,
  approve: Approver | undefined,
): Observable<Verdict> => {
  const verdict = approve === undefined ? unasked : approve(request);
  return isVerdict(verdict) ? of(verdict) : from(verdict);
};

const unasked: Verdict = { approved: false, reason: 'There is no approver.' };

const isVerdict = (given: ReturnType<Approver>): given is Verdict =>
  typeof given === 'boolean' || 'approved' in given;

const isCallable = (value: unknown): value is CallableFunction => typeof value === 'function';

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  isRecord(value) && typeof Reflect.get(value, Symbol.asyncIterator) === 'function';
