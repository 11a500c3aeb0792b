import type { Observable, ObservableInput, OperatorFunction } from 'rxjs';
import { concatMap, defaultIfEmpty, defer, EMPTY, expand, from, last, map, of, take } from 'rxjs';
import type { Agent } from '../../agent.js';
import type { CallOptions } from '../../call/call-options.js';
import type { Composable, OutOf } from '../../operators/compose.js';
import { composed, isStep, runnerOf } from '../../operators/compose.js';
import type { StepRun } from '../../call/callable.js';
import { MillraceError, misuse } from '../../values/errors.js';
import type { Input, InputMessage } from '../../seams/input.js';
import { isRecord } from '../../values/json.js';
import { history, historyIn } from '../../memories/conversation.js';
import { type ContentBlock, isContentBlock, textBlock } from '../../values/message.js';
import { checkOptions, isFunction, listOf, type Rule, wholeNumber } from '../../values/options.js';
import { silent } from '../../seams/tool-context.js';
import type { Reply } from '../../values/reply.js';
import { createTrampoline, subscribeOnTrampoline } from '../../flow/trampoline.js';

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
 * with the names of who said it; what was before is its history, the own words as its own. Emits the list of replies once nobody is next, and none of them is the
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
const inRounds =
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
  checkOptions('debate()', options, debateRules, ['agents', 'judge']);
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

const debateRules: Readonly<Record<keyof DebateOptions, Rule>> = {
  agents: listOf('agents'),
  rounds: wholeNumber(1),
  judge: [isStep, 'an agent, a session or another step'],
  until: isFunction,
};

/** Decides by what was said so far, and by what was asked; at once, or by an Observable, of which the first value counts, or a Promise. One who calls an agent passes the options on, so that the call belongs to the one above. */
export type Decide<What, Said extends Reply = Reply> = (
  transcript: Transcript<Said>,
  input: Input,
  options: CallOptions,
) => What | ObservableInput<What>;

/** Lets agents speak one after the other, and emits what they have said when nobody is next, when the turns are used up, or when one was interrupted. */
const takeTurns = <Said extends Reply>(
  owner: string,
  agents: readonly Agent[],
  maxTurns: number,
  next: Decide<Agent | undefined, Said>,
): StepRun<Transcript<Said>> => {
  const isOver = (transcript: Transcript<Said>): boolean =>
    transcript.length >= maxTurns || transcript.at(-1)?.reason === 'interrupted';
  return (input, given, options = silent(given)) =>
    inTurns$<Transcript<Said>>([], (transcript) =>
      isOver(transcript)
        ? EMPTY
        : defer(() => decided$(next(transcript, input, options), isNobodyOrStep)).pipe(
            concatMap((agent) => {
              if (agent === undefined) return EMPTY;
              if (!agents.includes(agent)) throw noAgentOf(owner);
              return reply$(owner, agent, transcript, input, options);
            }),
            // What they say is known by their types, which a list of them does not keep.
            // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
            map((reply) => Object.freeze([...transcript, reply as Said])),
          ),
    ).pipe(last());
};

const reply$ = (
  owner: string,
  agent: Agent,
  transcript: Transcript,
  asked: Input,
  options: CallOptions,
): Observable<Reply> => {
  const { history: heard, input } = hearing(agent.name, asked, transcript);
  const { use = [] } = options;
  const before = heard.length === 0 ? [] : history([...(historyIn(use) ?? []), ...heard]);
  return agent.call$(input, { ...options, use: [...use, before] }).pipe(
    map((reply) => {
      if (reply.reason === 'suspended') throw cannotWait(owner, agent.name);
      return reply.name === agent.name ? reply : Object.freeze({ ...reply, name: agent.name });
    }),
  );
};

const decided$ = <What>(
  told: What | ObservableInput<What>,
  isTold: (value: What | ObservableInput<What>) => value is What,
): Observable<What | undefined> =>
  isTold(told) ? of(told) : from(told).pipe(take(1), defaultIfEmpty(undefined));

const isNobodyOrStep = (
  value: Agent | undefined | ObservableInput<Agent | undefined>,
): value is Agent | undefined => value === undefined || isStep(value);

const noAgentOf = (owner: string): MillraceError =>
  misuse(`${owner}: what 'next' has chosen is none of its 'agents'.`);

const cannotWait = (owner: string, name: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `${owner}: the agent '${name}' waits for the result of a tool, and nobody can bring it one here. Give it tools that do not suspend.`,
  );

/** Emits a state and all that come of it, one by one, until one comes to nothing. States that come at once do not nest. */
export const inTurns$ = <State>(
  first: State,
  next: (state: State) => Observable<State>,
): Observable<State> =>
  defer(() => {
    const inTurn = subscribeOnTrampoline<State>(createTrampoline());
    return of(first).pipe(expand((state) => next(state).pipe(inTurn)));
  });

/** Refuses what is no list of agents, and names that do not tell them apart. */
export const checkAgents = (owner: string, agents: readonly unknown[], least: number): void => {
  if (agents.length < least) throw misuse(`${owner} needs at least ${least} of 'agents'.`);
  const wrong = agents.findIndex((agent) => nameOf(agent) === undefined);
  if (wrong !== -1) {
    throw misuse(
      `${owner}: what stands at place ${wrong + 1} of 'agents' is none. Give other steps and sessions a name: asAgent(step, { name: 'writer' }).`,
    );
  }
};

/** Refuses names that do not tell apart who speaks. */
export const checkNames = (owner: string, speakers: readonly unknown[]): void => {
  const names = speakers.map(nameOf);
  const twice = names.find((name, index) => name !== undefined && names.indexOf(name) !== index);
  if (twice === undefined) return;
  throw misuse(
    `${owner}: more than one agent is called '${twice}'. Give each a 'name' of its own, so that they know who says what.`,
  );
};

const nameOf = (agent: unknown): string | undefined =>
  isRecord(agent) && typeof agent['call$'] === 'function' && typeof agent['name'] === 'string'
    ? agent['name']
    : undefined;

/** What was said, in the order in which it was said. The name of each reply is that of the agent whose turn it was. */
export type Transcript<Said extends Reply = Reply> = readonly Said[];

/** What an agent says. */
export type ReplyOf<AnyAgent> = AnyAgent extends Agent<infer Output> ? Reply<Output> : never;

interface Hearing {
  readonly history: readonly InputMessage[];
  readonly input: Input;
}

const nothingNew = 'Nobody else has said anything. Go on.';

/** What an agent gets to hear: as its input what was asked and what the others have said, or, when it has had a turn before, what they have said since; all before that is its history. */
const hearing = (name: string, asked: Input, transcript: Transcript): Hearing => {
  const turns = transcript.findLastIndex((reply) => reply.name === name) + 1;
  const news = saidIn(transcript.slice(turns), name);
  if (turns === 0) return { history: [], input: withSaid(asked, news) };
  const before = saidIn(transcript.slice(0, turns), name);
  return {
    history: [...messagesIn(asked), ...before],
    input: news.length === 0 ? nothingNew : news,
  };
};

const allHeard = (asked: Input, transcript: Transcript): Input =>
  withSaid(asked, saidIn(transcript));

const withSaid = (asked: Input, said: readonly InputMessage[]): Input =>
  said.length === 0 ? asked : [...messagesIn(asked), ...said];

/** What one hears of it: the own words as the assistant's, those of others as users' with their names. */
const saidIn = (transcript: Transcript, own?: string): readonly InputMessage[] =>
  transcript.flatMap<InputMessage>(({ reason, content, name = '' }) => {
    const words = content.filter(isContentBlock).filter(isSaid);
    if (words.length === 0 || isCut(reason)) return [];
    return name === own
      ? [{ role: 'assistant', name, content: words }]
      : [{ role: 'user', name, content: words }];
  });

const isCut = (reason: Reply['reason']): boolean =>
  reason === 'interrupted' || reason === 'stopped';

const isSaid = (block: ContentBlock): boolean => block.type !== 'text' || block.text.trim() !== '';

/** An input as a list of messages, to which others can be added. What cannot be read is left to the call that gets it. */
export const messagesIn = (input: Input): readonly InputMessage[] => {
  if (typeof input === 'string') return [userMessage(input)];
  if (!isList(input)) return [fromOthers(input)];
  const parts: readonly (ContentBlock | InputMessage | string)[] = input;
  const blocks = parts.filter(isBlock);
  if (blocks.length === parts.length) return [{ role: 'user', content: blocks }];
  return parts.flatMap((part) =>
    isBlock(part) ? [] : typeof part === 'string' ? [userMessage(part)] : [part],
  );
};

const isList = (input: Input): input is Extract<Input, readonly unknown[]> => Array.isArray(input);

const isBlock = (part: ContentBlock | InputMessage | string): part is ContentBlock =>
  isContentBlock(part);

/** A text as a message of a user's. */
const userMessage = (text: string): InputMessage => ({
  role: 'user',
  content: [textBlock(text)],
});

const fromOthers = (message: InputMessage): InputMessage =>
  message.role === 'assistant'
    ? {
        role: 'user',
        content: message.content.filter(isContentBlock),
        ...(message.name === undefined ? {} : { name: message.name }),
      }
    : message;
