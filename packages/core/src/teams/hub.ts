import { map, type OperatorFunction } from 'rxjs';
import type { Agent } from '../agent.js';
import { composed } from '../compose/compose.js';
import { misuse } from '../errors.js';
import type { Input } from '../input.js';
import { checkOptions, isFunction, listOf, type Rule, wholeNumber } from '../options.js';
import { checkAgents, checkNames } from './check-agents.js';
import { type Decide, decided$, takeTurns } from './take-turns.js';
import type { ReplyOf, Transcript } from './transcript.js';
import type { Reply } from '../reply.js';

/** Agents that speak in turn, or one at a time as somebody decides. */
export type HubOptions<Agents extends readonly Agent[] = readonly Agent[]> =
  HubRounds<Agents> | HubTurns<Agents>;

/** Agents that speak in turn, in the order of the list. */
export interface HubRounds<Agents extends readonly Agent[] = readonly Agent[]> {
  /** Who takes part: each by a name of its own. */
  readonly agents: Agents;
  /** How often each speaks. Default: 1. */
  readonly rounds?: number;
  readonly next?: undefined;
  readonly maxTurns?: undefined;
}

/** Agents of which one is chosen for each turn. */
export interface HubTurns<Agents extends readonly Agent[] = readonly Agent[]> {
  /** Who takes part: each by a name of its own. */
  readonly agents: Agents;
  /** Who speaks next, by what was said so far; nobody ends the hub. */
  // eslint-disable-next-line rxjs-x/finnish -- It need not return an Observable.
  readonly next: Decide<Agent | undefined, ReplyOf<Agents[number]>>;
  /** Turns in all; the hub ends with the last one. Default: 20. */
  readonly maxTurns?: number;
  readonly rounds?: undefined;
}

/**
 * Composes agents into a conversation in which each hears what the others say. One whose turn it is gets, as its input, what was asked and what was said since it spoke last,
 * with the names of who said it; what was before is its `history`, the own words as its own. Emits the list of replies once nobody is next, and none of them is the
 * answer: nobody speaks for an agent that `asAgent` makes of it. A reply without words, or that was interrupted or stopped, is not heard by the others; one that was interrupted ends the hub. An
 * error of one is an error of the whole, and one that suspends is an `invalidState` error. An agent that remembers is `asAgent(session, { name })`: it gets what is new, and knows the rest.
 */
export const hub = <const Agents extends readonly [Agent, ...Agent[]]>(
  options: HubOptions<Agents>,
): OperatorFunction<Input, Transcript<ReplyOf<Agents[number]>>> => {
  checkOptions('hub()', options, rules, ['agents']);
  const { rounds, maxTurns, next } = options;
  const agents = [...options.agents];
  checkAgents('hub()', agents, 1);
  checkNames('hub()', agents);
  checkTurns({ rounds, maxTurns, next });
  return composed(
    next === undefined
      ? takeTurns('hub()', agents, (rounds ?? 1) * agents.length, inRounds(agents))
      : takeTurns('hub()', agents, maxTurns ?? 20, next),
  );
};

const checkTurns = ({
  rounds,
  next,
  maxTurns,
}: Readonly<Record<'rounds' | 'next' | 'maxTurns', unknown>>): void => {
  if (next === undefined && maxTurns !== undefined) {
    throw misuse("hub(): 'maxTurns' goes with 'next'. Say how often each speaks by 'rounds'.");
  }
  if (next !== undefined && rounds !== undefined) {
    throw misuse("hub(): 'rounds' does not go with 'next'. Say how many turns by 'maxTurns'.");
  }
};

const rules: Readonly<Record<keyof HubTurns | keyof HubRounds, Rule>> = {
  agents: listOf('agents'),
  rounds: wholeNumber(1),
  next: isFunction,
  maxTurns: wholeNumber(1),
};

/** Takes agents in the order of their list, round after round; between two rounds it may be decided that it is enough. */
export const inRounds =
  <Said extends Reply>(
    agents: readonly Agent[],
    until?: Decide<boolean, Said>,
  ): Decide<Agent | undefined, Said> =>
  (transcript, input, options) => {
    const place = transcript.length % agents.length;
    const agent = agents[place];
    if (until === undefined || place > 0 || transcript.length === 0) return agent;
    return decided$(until(transcript, input, options), isBoolean).pipe(
      map((isEnough) => (isEnough === true ? undefined : agent)),
    );
  };

const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
