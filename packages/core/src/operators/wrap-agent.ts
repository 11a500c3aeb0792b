import { defer } from 'rxjs';
import type { Agent } from '../agent.js';
import type { Input } from '../seams/input.js';
import type { AnyRun } from '../values/reply.js';
import type { CallOptions } from '../call/call-options.js';
import { toCallable, type View } from '../call/callable.js';

/**
 * Returns an agent that decides at the start of each call which agent makes it, and with which options: for layers that
 * only some calls need. `choose` gets the agent with the layers that `with` has added. Derive the agent that it returns
 * from that one with `with`: `events$` of the result stays that of `agent`, and shows no calls of unrelated agents.
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
    defer(() => view(viewed(input, ...choose(agent, given)))),
  ),
  with: (...layers) => wrapAgent(agent.with(...layers), choose),
});

/** The call of another agent for a view, which makes it by what it reads. */
export const viewed = <Output>(
  input: Input,
  agent: Agent<Output>,
  options: CallOptions,
): Parameters<View<never>>[0] => ({
  get events$() {
    return agent.stream$(input, options);
  },
  get reply$() {
    return agent.call$(input, options);
  },
});
