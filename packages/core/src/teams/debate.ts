import { concatMap, type OperatorFunction } from 'rxjs';
import type { Agent } from '../agent.js';
import { composed, isStep, type OutOf, runnerOf, type Composable } from '../compose/compose.js';
import type { Input } from '../input.js';
import { checkOptions, isFunction, listOf, type Rule, wholeNumber } from '../options.js';
import { checkAgents, checkNames } from './check-agents.js';
import { inRounds } from './hub.js';
import { type Decide, takeTurns } from './take-turns.js';
import { allHeard, type ReplyOf } from './transcript.js';

/** Who debates, for how long, and who decides. */
export interface DebateOptions<
  Agents extends readonly Agent[] = readonly Agent[],
  Judge extends Composable = Composable,
> {
  /** The sides, two at least, each by a name of its own. What a side stands for is for its instructions to say. */
  readonly agents: Agents;
  /** How often each side speaks. Default: 2. */
  readonly rounds?: number;
  /** Gets what was asked and all that was said, with the names of who said it, and gives the answer. */
  readonly judge: Judge;
  /** Asked between two rounds: whether there has been enough of it. Default: never. */
  // eslint-disable-next-line rxjs-x/finnish -- It need not return an Observable.
  readonly until?: Decide<boolean, ReplyOf<Agents[number]>>;
}

/**
 * Composes agents into a debate: they speak in turn and hear each other, as in a `hub`, and then the judge gets what was asked and all that was said. Emits what the judge
 * emits, and in an agent that `asAgent` makes of it, the judge speaks, and nobody else. A side that was interrupted ends the debate early: the judge decides on what there is. An error of one is an error of the whole.
 */
export const debate = <
  const Agents extends readonly [Agent, Agent, ...Agent[]],
  const Judge extends Composable,
>(
  options: DebateOptions<Agents, Judge>,
): OperatorFunction<Input, OutOf<Judge>> => {
  checkOptions('debate()', options, rules, ['agents', 'judge']);
  const { rounds = 2, judge, until } = options;
  const agents = [...options.agents];
  checkAgents('debate()', agents, 2);
  checkNames('debate()', [...agents, judge]);
  const maxTurns = rounds * agents.length;
  const discuss = takeTurns('debate()', agents, maxTurns, inRounds(agents, until));
  const decide = runnerOf(judge);
  return composed((input, given) =>
    discuss(input, given).pipe(
      concatMap((transcript) => decide(allHeard(input, transcript), given)),
    ),
  );
};

const rules: Readonly<Record<keyof DebateOptions, Rule>> = {
  agents: listOf('agents'),
  rounds: wholeNumber(1),
  judge: [isStep, 'an agent, a session or another step'],
  until: isFunction,
};
