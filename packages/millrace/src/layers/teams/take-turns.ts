import type { Observable, ObservableInput, OperatorFunction } from 'rxjs';
import { concatMap, defaultIfEmpty, defer, EMPTY, expand, from, last, map, of, take } from 'rxjs';
import type { Agent } from '../../agent.js';
import type { CallOptions } from '../../call/call-options.js';
import type { Composable, OutOf } from '../../operators/compose.js';
import { composed, isStep, runnerOf } from '../../operators/compose.js';
import type { StepRun } from '../../call/callable.js';
import { MillraceError, misuse } from '../../values/errors.js';
import { withBlocks } from '../../seams/given-message.js';
import type { GivenMessage, Input, InputMessage } from '../../seams/input.js';
import { isRecord } from '../../values/json.js';
import { history, historyIn } from '../../memories/conversation.js';
import { type ContentBlock, isContentBlock } from '../../values/message.js';
import { checkOptions, isFunction, listOf, type Rule, wholeNumber } from '../../values/options.js';
import { silent } from '../../seams/tool-context.js';
import type { Reply } from '../../values/reply.js';
import { createTrampoline, subscribeOnTrampoline } from '../../flow/trampoline.js';

export type HubOptions<Agents extends readonly Agent[] = readonly Agent[]> =
  HubRounds<Agents> | HubTurns<Agents>;

export interface HubRounds<Agents extends readonly Agent[] = readonly Agent[]> {
  readonly agents: Agents;
  /** Turns of each agent. Default: 1. */
  readonly rounds?: number;
  readonly next?: undefined;
  readonly maxTurns?: undefined;
}

export interface HubTurns<Agents extends readonly Agent[] = readonly Agent[]> {
  readonly agents: Agents;
  /** Chooses the next speaker from the transcript; `undefined` ends the hub. */
  // eslint-disable-next-line rxjs-x/finnish -- It need not return an Observable.
  readonly next: Decide<Agent | undefined, ReplyOf<Agents[number]>>;
  /** Maximum number of turns in total. Default: 20. */
  readonly maxTurns?: number;
  readonly rounds?: undefined;
}

/**
 * Composes agents into a conversation in which each hears the others. The input of a turn is the question and what
 * others said since the agent's last turn, with their names; earlier messages are its history. Emits the list of
 * replies when there is no next speaker. None of them is the answer: in `asAgent`, no agent of the hub streams as it.
 * The others do not hear replies that are empty, interrupted or stopped; an interrupted one ends the hub. An error of
 * an agent is an error of the whole; a suspended one is an `invalidState` error. Use `asAgent(session, { name })` for
 * an agent with memory: it gets new messages only.
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
      ? takeTurns('hub()', agents, (rounds ?? 1) * agents.length, roundRobin(agents))
      : takeTurns('hub()', agents, maxTurns ?? 20, next),
  );
};

const checkTurns = ({
  rounds,
  next,
  maxTurns,
}: Readonly<Record<'rounds' | 'next' | 'maxTurns', unknown>>): void => {
  if (next === undefined && maxTurns !== undefined) {
    throw misuse("hub(): 'maxTurns' requires 'next'. Use 'rounds' to limit each agent.");
  }
  if (next !== undefined && rounds !== undefined) {
    throw misuse("hub(): 'rounds' cannot be combined with 'next'. Use 'maxTurns'.");
  }
};

const rules: Readonly<Record<keyof HubTurns | keyof HubRounds, Rule>> = {
  agents: listOf('agents'),
  rounds: wholeNumber(1),
  next: isFunction,
  maxTurns: wholeNumber(1),
};

/** Takes agents in order, round after round; between two rounds, `until` may end it. */
const roundRobin =
  <AnyReply extends Reply>(
    agents: readonly Agent[],
    until?: Decide<boolean, AnyReply>,
  ): Decide<Agent | undefined, AnyReply> =>
  (transcript, input, options) => {
    const index = transcript.length % agents.length;
    const agent = agents[index];
    if (until === undefined || index > 0 || transcript.length === 0) return agent;
    return toDecision$(until(transcript, input, options), isBoolean).pipe(
      map((isEnough) => (isEnough === true ? undefined : agent)),
    );
  };

const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';

export interface DebateOptions<
  Agents extends readonly Agent[] = readonly Agent[],
  Judge extends Composable = Composable,
> {
  /** Two or more sides with unique names. Their instructions define their positions. */
  readonly agents: Agents;
  /** Turns of each side. Default: 2. */
  readonly rounds?: number | undefined;
  /** Receives the question and all replies, with their names, and gives the answer. */
  readonly judge: Judge;
  /** Decides between two rounds whether to end the debate. Default: never. */
  // eslint-disable-next-line rxjs-x/finnish -- It need not return an Observable.
  readonly until?: Decide<boolean, ReplyOf<Agents[number]>> | undefined;
}

/**
 * Composes agents into a debate: they speak in turn and hear each other, as in a `hub`; then the judge gets the
 * question and all replies. Emits what the judge emits; in `asAgent`, only the judge streams as the answer. An
 * interrupted side ends the debate early, and the judge decides on what there is. Errors as its agents do.
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
  const discuss = takeTurns('debate()', agents, maxTurns, roundRobin(agents, until));
  const decide = runnerOf(judge);
  return composed((input, given) =>
    discuss(input, given).pipe(
      concatMap((transcript) => decide(withTranscript(input, transcript), given)),
    ),
  );
};

const debateRules: Readonly<Record<keyof DebateOptions, Rule>> = {
  agents: listOf('agents'),
  rounds: wholeNumber(1),
  judge: [isStep, 'an agent, a session or another step'],
  until: isFunction,
};

/** Decides on a transcript. Pass `options` on to calls of agents, so they belong to the call above. */
export type Decide<What, AnyReply extends Reply = Reply> = (
  transcript: Transcript<AnyReply>,
  input: Input,
  options: CallOptions,
) => What | ObservableInput<What>;

/** Lets agents speak in turn; emits the transcript after the last turn, or once an agent was interrupted. */
const takeTurns = <AnyReply extends Reply>(
  owner: string,
  agents: readonly Agent[],
  maxTurns: number,
  next: Decide<Agent | undefined, AnyReply>,
): StepRun<Transcript<AnyReply>> => {
  const isOver = (transcript: Transcript<AnyReply>): boolean =>
    transcript.length >= maxTurns || transcript.at(-1)?.reason === 'interrupted';
  return (input, given, options = silent(given)) =>
    iterate$<Transcript<AnyReply>>([], (transcript) =>
      isOver(transcript)
        ? EMPTY
        : defer(() => toDecision$(next(transcript, input, options), isAgentOrNone)).pipe(
            concatMap((agent) => {
              if (agent === undefined) return EMPTY;
              if (!agents.includes(agent)) throw unknownSpeaker(owner);
              return reply$(owner, agent, transcript, input, options);
            }),
            // The types know the replies, but a list of agents does not keep them.
            // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
            map((reply) => Object.freeze([...transcript, reply as AnyReply])),
          ),
    ).pipe(last());
};

const reply$ = (
  owner: string,
  agent: Agent,
  transcript: Transcript,
  question: Input,
  options: CallOptions,
): Observable<Reply> => {
  const { history: earlier, input } = turnInput(agent.name, question, transcript);
  const { use = [] } = options;
  const before = earlier.length === 0 ? [] : history([...(historyIn(use) ?? []), ...earlier]);
  return agent.call$(input, { ...options, use: [...use, before] }).pipe(
    map((reply) => {
      if (reply.reason === 'suspended') throw cannotWait(owner, agent.name);
      return reply.name === agent.name ? reply : Object.freeze({ ...reply, name: agent.name });
    }),
  );
};

const toDecision$ = <What>(
  decision: What | ObservableInput<What>,
  isDecision: (value: What | ObservableInput<What>) => value is What,
): Observable<What | undefined> =>
  isDecision(decision) ? of(decision) : from(decision).pipe(take(1), defaultIfEmpty(undefined));

const isAgentOrNone = (
  value: Agent | undefined | ObservableInput<Agent | undefined>,
): value is Agent | undefined => value === undefined || isStep(value);

const unknownSpeaker = (owner: string): MillraceError =>
  misuse(`${owner}: 'next' must return one of its 'agents'.`);

const cannotWait = (owner: string, name: string): MillraceError =>
  new MillraceError(
    'invalidState',
    `${owner}: the agent '${name}' waits for an external tool result, which cannot be provided here. Give it tools that do not suspend.`,
  );

/** Emits a state and all its successors, one by one. Synchronous states do not nest. */
export const iterate$ = <State>(
  first: State,
  next: (state: State) => Observable<State>,
): Observable<State> =>
  defer(() => {
    const queued = subscribeOnTrampoline<State>(createTrampoline());
    return of(first).pipe(expand((state) => next(state).pipe(queued)));
  });

export const checkAgents = (owner: string, agents: readonly unknown[], least: number): void => {
  if (agents.length < least) throw misuse(`${owner} needs at least ${least} of 'agents'.`);
  const invalid = agents.findIndex((agent) => nameOf(agent) === undefined);
  if (invalid !== -1) {
    throw misuse(
      `${owner}: entry ${invalid + 1} of 'agents' is not an agent. Turn other steps and sessions into one: asAgent(step, { name: 'writer' }).`,
    );
  }
};

export const checkNames = (owner: string, speakers: readonly unknown[]): void => {
  const names = speakers.map(nameOf);
  const double = names.find((name, index) => name !== undefined && names.indexOf(name) !== index);
  if (double === undefined) return;
  throw misuse(
    `${owner}: more than one agent is called '${double}'. Give each a unique 'name', which the others see.`,
  );
};

const nameOf = (agent: unknown): string | undefined =>
  isRecord(agent) && typeof agent['call$'] === 'function' && typeof agent['name'] === 'string'
    ? agent['name']
    : undefined;

export type Transcript<AnyReply extends Reply = Reply> = readonly AnyReply[];

export type ReplyOf<AnyAgent> = AnyAgent extends Agent<infer Output> ? Reply<Output> : never;

interface TurnInput {
  readonly history: readonly InputMessage[];
  readonly input: Input;
}

const nothingNew = 'No one else has replied. Continue.';

/** The input of a turn: the question and replies of others, or those since the last turn; earlier ones are history. */
const turnInput = (name: string, question: Input, transcript: Transcript): TurnInput => {
  const turns = transcript.findLastIndex((reply) => reply.name === name) + 1;
  const unheard = messagesOf(transcript.slice(turns), name);
  if (turns === 0) return { history: [], input: withReplies(question, unheard) };
  const before = messagesOf(transcript.slice(0, turns), name);
  return {
    history: [...toMessages(question), ...before],
    input: unheard.length === 0 ? nothingNew : unheard,
  };
};

const withTranscript = (question: Input, transcript: Transcript): Input =>
  withReplies(question, messagesOf(transcript));

const withReplies = (question: Input, replies: readonly InputMessage[]): Input =>
  replies.length === 0 ? question : [...toMessages(question), ...replies];

/** The replies as an agent hears them: its own as assistant messages, others as user messages with names. */
const messagesOf = (transcript: Transcript, own?: string): readonly InputMessage[] =>
  transcript.flatMap<InputMessage>(({ reason, content, name = '' }) => {
    const blocks = content.filter(isContentBlock).filter(isFilled);
    if (blocks.length === 0 || isIncomplete(reason)) return [];
    return name === own
      ? [{ role: 'assistant', name, content: blocks }]
      : [{ role: 'user', name, content: blocks }];
  });

const isIncomplete = (reason: Reply['reason']): boolean =>
  reason === 'interrupted' || reason === 'stopped';

const isFilled = (block: ContentBlock): boolean =>
  block.type !== 'text' || block.text.trim() !== '';

/** An input as a list of messages. Invalid parts are left to the call to reject. */
export const toMessages = (input: Input): readonly InputMessage[] => {
  if (!isList(input)) return [fromOthers(withBlocks(input))];
  const parts: readonly (ContentBlock | GivenMessage | string)[] = input;
  const blocks = parts.filter(isBlock);
  if (blocks.length === parts.length) return [{ role: 'user', content: blocks }];
  return parts.flatMap((part) => (isBlock(part) ? [] : [withBlocks(part)]));
};

const isList = (input: Input): input is Extract<Input, readonly unknown[]> => Array.isArray(input);

const isBlock = (part: ContentBlock | GivenMessage | string): part is ContentBlock =>
  isContentBlock(part);

const fromOthers = (message: InputMessage): InputMessage =>
  message.role === 'assistant'
    ? {
        role: 'user',
        content: message.content.filter(isContentBlock),
        ...(message.name === undefined ? {} : { name: message.name }),
      }
    : message;
