import { createAgent, MillraceError, type Reply, textOf, type Tool } from '@millrace/core';
import {
  acting,
  append,
  end,
  nextIteration,
  phase,
  type PhaseFactory,
} from '@millrace/core/phases';
import { type Observable, of } from 'rxjs';
import { nobody } from '../nobody.js';
import type { Scope } from '../scope.js';
import { childCall } from '../work.js';

/**
 * Runs a tool once, in a call of its own without a model: with all that holds for a tool that a model asks for, such as validation, approval,
 * time-outs, retries and events. `reply.output` is the `details` of its result. A result that is an error is one.
 */
export const runOnce$ = (
  id: string,
  tool: Tool,
  input: Readonly<Record<string, unknown>>,
  scope: Scope,
): Observable<Reply> =>
  createAgent({
    name: id,
    model: nobody,
    tools: [tool],
    phases: [asking(tool.name, input), acting, concluding],
    // The output is for other components, and not for a model.
    defaults: { maxObservation: 1_000_000 },
  }).call$(JSON.stringify(input), childCall(id, scope));

/** In the place of a model: asks for the tool. */
const asking = (name: string, input: Readonly<Record<string, unknown>>): PhaseFactory => {
  const asked: PhaseFactory = ({ call }) =>
    phase((run) =>
      of(
        append(nextIteration(run), {
          id: `${call.callId}/1`,
          role: 'assistant',
          name: call.agent.at(-1) ?? '',
          content: [{ type: 'tool_use', id: 'run', name, input }],
        }),
      ),
    );
  return asked;
};

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
