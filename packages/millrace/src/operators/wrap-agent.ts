import { defer } from 'rxjs';
import type { Agent } from '../agent.js';
import type { Input } from '../seams/input.js';
import type { AnyRun } from '../values/reply.js';
import type { CallOptions } from '../call/call-options.js';
import { toCallable, type View } from '../call/callable.js';

/**
 * Returns an agent that decides at the start of each call whether it runs with more layers or other options. `choose`
 * derives the agent of the call from the given one, with `with`: `events$` shows the calls of that one only.
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
