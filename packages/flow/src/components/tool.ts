import {
  createAgent,
  MillraceError,
  type Model,
  type ModelChunk,
  type Reply,
  textOf,
  type Tool,
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
  toolCallId = 'run',
): Observable<Reply> =>
  createAgent({
    name: id,
    model: requestTool(tool.name, input, toolCallId),
    tools: [tool],
    use: [{ name: 'runOnce', turn: () => [reasoning, acting, checkInterrupt, answerWithResult] }],
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
const answerWithResult: PhaseFactory = ({ info: call }) =>
  phase((run) => {
    const last = run.messages.at(-1);
    const result = last?.role === 'tool' ? last.content[0] : undefined;
    if (result === undefined) throw new MillraceError('invalidState', 'The tool was not run.');
    if (result.isError) throw errorIn(result.details, textOf(result));
    const answer = {
      id: `${call.callId}/answer`,
      role: 'assistant',
      name: call.agent.at(-1) ?? '',
      content: result.content,
    } as const;
    return of({ ...end(run, 'answer', answer), output: result.details });
  });

/** How a tool of a component fails with the error of a code: as the `details` of its result, which a journal keeps. */
export interface Failure {
  readonly failure: Pick<MillraceError, 'code' | 'userMessage'> & { readonly status?: number };
}

const errorIn = (details: unknown, message: string): MillraceError => {
  if (!isFailure(details)) return new MillraceError('tool', message);
  const { code, userMessage, status } = details.failure;
  return new MillraceError(code, message, { userMessage, ...defined({ status }) });
};

/** Only tools of this package return such details: the name of the key is theirs. */
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
