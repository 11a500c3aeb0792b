import {
  createAgent,
  MillraceError,
  type Model,
  type ModelChunk,
  type Reply,
  textOf,
  type Tool,
  type ToolResultBlock,
} from 'millrace';
import { acting, checkInterrupt, end, phase, type PhaseFactory, reasoning } from 'millrace/phases';
import { defer, map, type Observable, of } from 'rxjs';
import { defined, isRecord } from 'millrace/values';
import { toolWithRetry } from '../attempts.js';
import type { ToolParams } from '../document.js';
import { limits } from '../limits.js';
import { fillRecord } from '../render.js';
import type { Scope } from '../scope.js';
import { childCall, textOutput, toResult, type Work } from '../work.js';

/** Runs a tool with input from templates, which is validated like the input of a model. */
export const toolWork =
  (id: string, { input = {}, retry }: ToolParams, given: Tool): Work =>
  (scope) =>
    defer(() => {
      const tool = toolWithRetry(given, retry);
      return runOnce$(id, tool, fillRecord(input, scope), scope);
    }).pipe(
      map((reply) => toResult(reply, ({ output: _details, ...answer }) => textOutput(answer))),
    );

type ToolInput = Readonly<Record<string, unknown>>;

/**
 * Runs a tool once, in its own call, like a tool call of a model: with validation, approval, timeouts, retries and
 * events. `reply.output` is the `details` of the result. Errors if the result is an error.
 */
export const runOnce$ = (
  id: string,
  tool: Tool,
  input: ToolInput,
  scope: Scope,
  { toolCallId = 'run', errorOf = errorOfResult }: OwnTool = {},
): Observable<Reply> =>
  createAgent({
    name: id,
    model: requestTool(tool.name, input, toolCallId),
    tools: [tool],
    use: [
      {
        name: 'runOnce',
        turn: () => [reasoning, acting, checkInterrupt, answerWithResult(errorOf)],
      },
    ],
    // Other components read the output, not a model, so it need not fit a context window.
    limits: { maxObservation: limits.response },
  }).call$(JSON.stringify(input), childCall(id, scope));

/** A stand-in for a model. It requests the tool in its only message. */
const requestTool = (name: string, input: ToolInput, id: string): Model => ({
  name: 'flow',
  stream$: () =>
    of<ModelChunk[]>({ type: 'toolCall', id, name, input }, { type: 'finish', finish: 'stop' }),
});

/** Ends the call with the tool result as the answer. */
const answerWithResult =
  (errorOf: Required<OwnTool>['errorOf']): PhaseFactory =>
  ({ info: call }) =>
    phase((run) => {
      const last = run.messages.at(-1);
      const result = last?.role === 'tool' ? last.content[0] : undefined;
      if (result === undefined) throw new MillraceError('invalidState', 'The tool was not run.');
      if (result.isError) throw errorOf(result);
      const answer = {
        id: `${call.callId}/answer`,
        role: 'assistant',
        name: call.agent.at(-1) ?? '',
        content: result.content,
      } as const;
      return of({ ...end(run, 'answer', answer), output: result.details });
    });

/** How a component runs a tool that it makes itself. */
interface OwnTool {
  readonly toolCallId?: string;
  /** The error of a result that is one. Default: `tool`, with its text. */
  readonly errorOf?: (result: ToolResultBlock) => MillraceError;
}

const errorOfResult = (result: ToolResultBlock): MillraceError =>
  new MillraceError('tool', textOf(result));

/** How a tool of a component fails with the error of a code: as the `details` of its result, which a journal keeps. */
export interface Failure {
  readonly failure: Pick<MillraceError, 'code' | 'userMessage'> & { readonly status?: number };
}

/** The error of such a tool. Not for other tools: their details may be data from outside. */
export const errorOfFailure = (result: ToolResultBlock): MillraceError => {
  const { details } = result;
  if (!isFailure(details)) return errorOfResult(result);
  const { code, userMessage, status } = details.failure;
  return new MillraceError(code, textOf(result), { userMessage, ...defined({ status }) });
};

const isFailure = (details: unknown): details is Failure =>
  isRecord(details) &&
  isRecord(details['failure']) &&
  codes.some((code) => isRecord(details['failure']) && code === details['failure']['code']) &&
  typeof details['failure']['userMessage'] === 'string';

const codes: readonly MillraceError['code'][] = [
  'timeout',
  'connection',
  'auth',
  'rateLimited',
  'server',
  'invalidRequest',
  'invalidResponse',
  'tooLarge',
  'redirect',
  'tool',
];
