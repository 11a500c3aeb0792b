import { defer } from 'rxjs';
import type { Agent } from '../agent.js';
import type { Input } from '../seams/input.js';
import type { AnyRun } from '../values/reply.js';
import type { CallOptions } from '../call/call-options.js';
import { toCallable, type View } from '../call/callable.js';

/**
 * Returns an agent that decides at the start of each call which agent makes it, and with which options: for layers that
 * only some calls need. `choose` gets the agent with the layers that `with` has added.
 *
 * @example
 * ```ts
 * const inspected = wrapAgent(agent, (own, options) => [debugging() ? own.with(inspect) : own, options]);
 * ```
 */
export const wrapAgent = <Output, Run extends AnyRun>(
  agent: Agent<Output, Run>,
  choose: <Own>(
    agent: Agent<Own, Run>,
    options: CallOptions,
  ) => readonly [agent: Agent<Own, Run>, options: CallOptions],
): Agent<Output, Run> => ({
  ...agent,
  ...toCallable<Output, Run>((input, given, view) =>
    defer(() => {
      const [chosen, options] = choose(agent, given);
      return view(viewed(chosen, input, options));
    }),
  ),
  with: (...layers) => wrapAgent(agent.with(...layers), choose),
});

/** The call of another agent for a view, which makes it by what it reads. */
export const viewed = <Output>(
  agent: Agent<Output>,
  input: Input,
  options: CallOptions,
): Parameters<View<never>>[0] => ({
  get events$() {
    return agent.stream$(input, options);
  },
  get reply$() {
    return agent.call$(input, options);
  },
});
