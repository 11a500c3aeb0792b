import { type AgentOptions, agentRules } from '../agent-options.js';
import { type Agent, defineAgent } from '../agent.js';
import type { OutputOf } from '../callable.js';
import type { OutOf, Composable } from '../compose/step.js';
import { checkOptions, type Rule } from '../options.js';
import type { Reply } from '../reply.js';
import type { InputSchema } from '../schema.js';
import { runStep } from './run-step.js';

/** What an agent that is made of a step has beside it: all that has not to do with a model and its loop. */
export type StepAgentOptions<Output extends InputSchema | undefined = InputSchema | undefined> =
  Omit<AgentOptions<Output>, 'model' | 'instructions' | 'tools'>;

type OutputIn<Out> = Out extends Reply<infer Output> ? Output : undefined;

/**
 * Makes an agent of a step: its loop is the program that the step is, and all else is as with any agent: sessions, events, guards,
 * interrupts, demand, time-outs. The calls of the step are below its own, in its stream, with their paths. What the step emits last is the
 * answer: a reply with all that it says, a message, a text, content blocks, or a list of replies; nothing is an `emptyAnswer` error. The last step of a `sequential`
 * and the one that a `route` has chosen speak for it: what they stream is streamed as its own, and passes the transforms of its `interceptors` too. In a
 * conversation, agents without a session of their own hear what was said before. An interrupt ends the calls that run, and begins no other.
 */
export const asAgent = <
  const AnyStep extends Composable,
  const Output extends InputSchema | undefined = undefined,
>(
  step: AnyStep,
  options: StepAgentOptions<Output> = {},
): Agent<OutputOf<Output, OutputIn<OutOf<AnyStep>>>> => {
  checkOptions('asAgent()', options, stepAgentRules);
  return defineAgent<Output, OutputIn<OutOf<AnyStep>>>('asAgent()', options, runStep(step));
};

const { model: _m, instructions: _i, tools: _t, ...rules } = agentRules;

/** What its options may be. */
export const stepAgentRules: Readonly<Record<keyof StepAgentOptions, Rule>> = rules;
