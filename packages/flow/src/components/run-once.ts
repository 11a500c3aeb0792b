import {
  createAgent,
  type Model,
  type ModelChunk,
  MillraceError,
  type Reply,
  textOf,
  type Tool,
} from '@millrace/core';
import {
  acting,
  checkInterrupt,
  end,
  phase,
  type PhaseFactory,
  reasoning,
} from '@millrace/core/phases';
import { type Observable, of } from 'rxjs';
import type { Scope } from '../scope.js';
import { childCall } from '../work.js';

type ToolInput = Readonly<Record<string, unknown>>;

/**
 * Runs a tool once, in a call of its own: with all that holds for a tool that a model asks for, such as validation, approval, time-outs,
 * retries and events. `reply.output` is the `details` of its result. A result that is an error is one.
 */
export const runOnce$ = (
  id: string,
  tool: Tool,
  input: ToolInput,
  scope: Scope,
): Observable<Reply> =>
  createAgent({
    name: id,
    model: asking(tool.name, input),
    tools: [tool],
    use: [{ name: 'runOnce', turn: () => [reasoning, acting, checkInterrupt, concluding] }],
    // The output is for other components, and not for a model.
    limits: { maxObservation: 1_000_000 },
  }).call$(JSON.stringify(input), childCall(id, scope));

/** What stands in the place of a model: it asks for the tool, and is not asked again. */
const asking = (name: string, input: ToolInput): Model => ({
  name: 'flow',
  stream$: () =>
    of<ModelChunk[]>(
      { type: 'toolUse', id: 'run', name, input },
      { type: 'finish', finish: 'stop' },
    ),
});

/** The result is the answer. */
const concluding: PhaseFactory = ({ call }) =>
  phase((run) => {
    const last = run.messages.at(-1);
    const result = last?.role === 'tool' ? last.content[0] : undefined;
    if (result === undefined) throw new MillraceError('invalidState', 'The tool was not run.');
    if (result.isError) throw new MillraceError('tool', textOf(result));
    const answer = {
      id: `${call.callId}/answer`,
      role: 'assistant',
      name: call.agent.at(-1) ?? '',
      content: result.content,
    } as const;
    return of({ ...end(run, 'answer', answer), output: result.details });
  });
