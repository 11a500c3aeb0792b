import type { Input } from './fill-arguments.js';
import type { Part } from './outline-parts.js';
import type { PlanContext } from './plan-context.js';
import { planSteps } from './plan-steps.js';
import type { Observation, Turn } from './read-conversation.js';
import { callKey, outcomeOf, type Step } from './step.js';

/** One use of a tool. */
export interface Call {
  readonly name: string;
  readonly input: Input;
}

/** The results of a turn, by the calls that were planned for them. */
export type Answers = ReadonlyMap<string, Observation>;

/**
 * Finds the results of a turn by planning it again, round by round: also of a call that an interceptor edited
 * on its way, whose result stands in the place of what was asked.
 */
export const replay = (parts: readonly Part[], { rounds }: Turn, context: PlanContext): Answers => {
  const all = rounds.flat().map((it): [string, Observation] => [callKey(it.name, it.input), it]);
  const planned = rounds.reduce<Answers>((answers, round) => {
    const asked = wanted(planSteps(parts, { ...context, answers }), answers);
    return new Map([...answers, ...matched(asked, round)]);
  }, new Map());
  return new Map([...all, ...planned]);
};

const matched = (
  asked: readonly Call[],
  round: readonly Observation[],
): readonly (readonly [string, Observation])[] => {
  const exact = new Map(round.map((it) => [callKey(it.name, it.input), it]));
  return asked.flatMap((call, index): readonly (readonly [string, Observation])[] => {
    const key = callKey(call.name, call.input);
    const there = asked.length === round.length ? round[index] : undefined;
    const found = exact.get(key) ?? (there?.name === call.name ? there : undefined);
    return found === undefined ? [] : [[key, found]];
  });
};

/** The calls that a plan still has to make, each once. */
export const wanted = (steps: readonly Step[], answers: Answers): readonly Call[] => {
  const calls = steps.flatMap((step): readonly (readonly [string, Call])[] => {
    if (step.status !== 'call') return [];
    const { status, input } = outcomeOf(step, answers);
    const call = { name: step.tool.name, input };
    return status === 'open' ? [[callKey(call.name, input), call]] : [];
  });
  return [...new Map(calls).values()];
};
