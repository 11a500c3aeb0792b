import { defer, map } from 'rxjs';
import { type Agent, type AgentOptions, agentRules, createAgent } from '../../agent.js';
import { withOwnTools } from '../select-tools.js';
import type { CallInfo, EndReason, Reply } from '../../values/reply.js';
import type { OutputOf } from '../../call/callable.js';
import { misuse } from '../../values/errors.js';
import type { Input } from '../../seams/input.js';
import { isRecord } from '../../values/json.js';
import type { MemoryFactory } from '../../memories/in-process-memory.js';
import { type ContentBlock, isContentBlock, textBlock, textOf } from '../../values/message.js';
import {
  checkOptions,
  defined,
  isDelay,
  isFlag,
  isFunction,
  isText,
  listOf,
  type Rule,
  wholeNumber,
} from '../../values/options.js';
import { section } from '../../models/prompt.js';
import type { Infer, InputSchema } from '../../values/schema.js';
import { jsonSchema } from '../../schema/index.js';
import { sessions } from '../sessions/sessions.js';
import { failedOutput, type ToolOutput, toolOutput } from '../../values/tool-output.js';
import { tool } from '../../tools/tool.js';
import { namesOf } from '../../tools/toolkit.js';
import type { Tool, ToolContext, ToolPolicy } from '../../tools/types.js';

/** How an agent is a tool of others. */
export interface AgentToolOptions<Schema extends InputSchema = DelegationSchema> extends Pick<
  ToolPolicy,
  'exclusive' | 'dedupe' | 'timeoutMs'
> {
  /** Tells a model what the agent is for, and when to ask it. */
  readonly description: string;
  /** What the model calls it. Default: the name of the agent, made fit. */
  readonly name?: string;
  /** What it is asked with. Default: `user_prompt`, `reasoning` and `context`, all of them texts. */
  readonly input?: Schema;
  /** Makes what the agent is asked with of that. Default: a text with all parts of it; an input of another schema as JSON. */
  readonly toPrompt?: (input: Infer<Schema>, context: ToolContext) => Input;
  /** How many agents may ask each other in a row, the outermost counted. Who is too deep is told to do it without. Default: 5. */
  readonly maxDepth?: number;
  /** The id of the conversation in which the agent is asked: it remembers then, and uses at the same time follow each other. Default: none. */
  readonly session?: string | ((context: ToolContext) => string | undefined);
  /** Makes the memory of such a conversation. Default: one in this process. */
  readonly memory?: MemoryFactory;
}

const delegation = jsonSchema({
  type: 'object',
  properties: {
    user_prompt: {
      type: 'string',
      minLength: 1,
      description:
        'What the agent is to do, in full and in plain words: it sees nothing of this conversation.',
    },
    reasoning: {
      type: 'string',
      description: 'Why you ask this agent, and what you need its answer for.',
    },
    context: {
      type: 'string',
      description: 'What it has to know to do that: facts, earlier results, names, wishes.',
    },
  },
  required: ['user_prompt'],
  additionalProperties: false,
});

/** What an agent is asked with, unless it has an input of its own. */
export type DelegationSchema = typeof delegation;

/**
 * Makes a tool of an agent: its result is the text of the answer, or its `output` as JSON, with costs in `details`. Its events are in the
 * same stream; interrupts, demand, context values and approvals reach it. An answer that was cut or refused is reported in words.
 */
export const agentTool = <const Schema extends InputSchema = DelegationSchema>(
  agent: Agent,
  options: AgentToolOptions<Schema>,
): Tool => {
  if (!isAgent(agent)) throw misuse('agentTool() needs an agent, such as createAgent() makes.');
  checkOptions(`agentTool() of '${agent.name}'`, options, rules, ['description']);
  const { maxDepth = 5, session, memory, toPrompt, input, description, ...rest } = options;
  const { name = fitName(agent.name), ...policy } = rest;
  const schema: InputSchema = input ?? delegation;
  const promptOf = (given: unknown, context: ToolContext): Input => {
    // What the validator has passed is of the schema's type, which no guard can say.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    if (toPrompt !== undefined) return toPrompt(given as Infer<Schema>, context);
    return input === undefined ? delegated(given) : JSON.stringify(given);
  };
  return tool({
    timeoutMs: 600_000,
    // Its calls are in the journal of the one above: what they have done is not done again.
    idempotent: true,
    ...defined(policy),
    name,
    description,
    input: schema,
    run: (given: unknown, parent) => {
      if (parent.agent.length >= maxDepth) return failedOutput(tooDeep(agent.name, maxDepth));
      return defer(() => {
        const id = typeof session === 'function' ? session(parent) : session;
        const prompt = promptOf(given, parent);
        return id === undefined
          ? agent.call$(prompt, { parent })
          : sessions(agent, defined({ memory }))
              .open(id)
              .call$(prompt, { parent, onBusy: 'queue' });
      }).pipe(map((reply) => delegatedOutput(agent.name, reply)));
    },
  });
};

const isAgent = (value: unknown): value is Agent =>
  isRecord(value) && typeof value['call$'] === 'function' && typeof value['name'] === 'string';

const delegated = (given: unknown): string => {
  const { user_prompt, reasoning, context } = isRecord(given) ? given : {};
  return [
    textIn(user_prompt),
    section('Why you are asked', textIn(reasoning)),
    section('Context', textIn(context)),
  ]
    .filter((part) => part !== undefined)
    .join('\n\n');
};

const textIn = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

const tooDeep = (name: string, maxDepth: number): string =>
  `Not asked: ${maxDepth} agents ask each other already, and no more may. Do what you would have asked '${name}' for yourself, or say what is missing.`;

const rules: Readonly<Record<keyof AgentToolOptions, Rule>> = {
  description: isText,
  name: isText,
  input: [(value) => value !== null, 'a schema'],
  toPrompt: isFunction,
  maxDepth: wholeNumber(1),
  session: [
    (value) => (typeof value === 'string' && value !== '') || typeof value === 'function',
    'the id of a session, or a function that gives one',
  ],
  memory: isFunction,
  timeoutMs: isDelay,
  exclusive: isFlag,
  dedupe: isFlag,
};

/** What the model that has asked an agent is told of its reply: the answer, or in words why there is none. */
const delegatedOutput = (name: string, reply: Reply): ToolOutput => {
  const { reason, iterations, toolUses, usage, output, sources } = reply;
  const told = tellings[reason];
  const details = {
    agent: reply.name ?? name,
    reason,
    iterations,
    toolUses,
    usage,
    ...(output === undefined ? {} : { output }),
    ...(sources === undefined ? {} : { sources }),
  };
  const content = told === undefined ? answerOf(reply) : noted(told(name), reply);
  return toolOutput({ content, details, isError: told !== undefined && !hasAnswer.has(reason) });
};

const answerOf = ({ content, output }: Reply): readonly ContentBlock[] => {
  if (output !== undefined) return [textBlock(JSON.stringify(output))];
  const said = content.filter(isContentBlock);
  return said.length > 0 ? said : [textBlock('(It has said nothing.)')];
};

const noted = (what: string, reply: Reply): readonly ContentBlock[] => {
  if (reply.reason === 'suspended' || textOf(reply).trim() === '') return [textBlock(what)];
  return [textBlock(`${what} What it has said:\n`), ...answerOf(reply)];
};

/** They end with an answer, be it less than what was asked for. */
const hasAnswer: ReadonlySet<EndReason> = new Set(['truncated', 'maxIterations', 'budget']);

type Telling = (name: string) => string;

const tellings: Readonly<Partial<Record<EndReason, Telling>>> = {
  truncated: (name) => `The answer of the agent '${name}' is cut off: it was too long.`,
  maxIterations: (name) => `The agent '${name}' has used up all its steps.`,
  budget: (name) => `The agent '${name}' has used up its budget.`,
  interrupted: (name) => `The agent '${name}' was interrupted before it was done.`,
  stopped: (name) => `The agent '${name}' was stopped before it was done.`,
  refused: (name) => `The agent '${name}' would not answer.`,
  suspended: (name) =>
    `The agent '${name}' waits for a result that somebody has to bring, and nobody can bring it here. Go on without, or say what is missing.`,
};

/** An agent that others may ask, and how. */
export interface Worker extends AgentToolOptions<InputSchema> {
  readonly agent: Agent;
}

/** What an agent is made of that leads others. */
export interface SupervisorOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends AgentOptions<Output> {
  /** Whom it may ask. Their names are made fit for tools, and told apart. */
  readonly agents: readonly Worker[];
  /** What it is told of its agents, before the list of who they are. Default: to hand out the work, and to answer for it. */
  readonly leading?: string;
  /** How many agents may ask each other in a row, the outermost counted, for workers that say nothing of it. Default: 5. */
  readonly maxDepth?: number;
}

/** Makes an agent that leads others: each of them is a tool of its (`agentTool`), so that it asks them one by one or several at once, and answers from what they say. Its instructions have a section `[Team]` with who can do what. */
export const supervisor = <const Output extends InputSchema | undefined = undefined>(
  options: SupervisorOptions<Output>,
): Agent<OutputOf<Output, undefined>> => {
  checkOptions('supervisor()', options, supervisorRules, ['model', 'agents']);
  const { agents, leading = lead, maxDepth = 5, ...own } = options;
  if (agents.length === 0 || !agents.every(isWorker)) throw noWorkers();
  const { name = 'supervisor', tools = [], instructions } = own;
  const names = fitNames(
    agents.map((worker) => worker.name ?? worker.agent.name),
    namesOf(tools),
  );
  const workers = agents.map(({ agent, ...worker }, index) =>
    agentTool(agent, {
      maxDepth,
      ...defined(worker),
      description: worker.description,
      name: names[index] ?? agent.name,
    }),
  );
  const list = workers.map((worker) => `- ${worker.name}: ${oneLine(worker.description)}`);
  const team = section('Team', `${leading}\n${list.join('\n')}`) ?? '';
  const withTeam = (text: string): string => (text === '' ? team : `${text}\n\n${team}`);
  const whole: AgentOptions<Output> = {
    ...own,
    name,
    instructions:
      typeof instructions === 'function'
        ? (call: CallInfo) => withTeam(instructions(call))
        : withTeam(instructions ?? ''),
  };
  return createAgent<Output>(withOwnTools(whole, workers));
};

const lead =
  'You lead these agents, each of which you ask by the tool of its name. Give each what it is good at, several at once where they do not need each other, with all that it has to know: they see nothing of this conversation. Judge what they say, and answer yourself.';

const isWorker = (value: unknown): boolean =>
  isRecord(value) && isAgent(value['agent']) && typeof value['description'] === 'string';

const noWorkers = () =>
  misuse(
    "supervisor(): 'agents' takes a list of whom it may ask: { agent, description: 'what it is for' }.",
  );

const supervisorRules: Readonly<Record<keyof SupervisorOptions, Rule>> = {
  ...agentRules,
  agents: listOf('agents with their descriptions'),
  leading: isText,
  maxDepth: wholeNumber(1),
};

export const fitName = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/[^\w.-]+/gu, '_')
    .replace(/^_+|_+$/g, '')
    .slice(0, 64) || 'agent';

/** Names that tools may have, one for each text, and no two of them the same or among those that are taken. */
export const fitNames = (
  texts: readonly string[],
  taken: readonly string[] = [],
): readonly string[] =>
  texts
    .reduce<readonly string[]>((names, text) => [...names, free(fitName(text), names)], taken)
    .slice(taken.length);

const free = (name: string, taken: readonly string[], nth = 1): string => {
  const suffix = nth === 1 ? '' : `_${nth}`;
  const numbered = name.slice(0, 64 - suffix.length) + suffix;
  return taken.includes(numbered) ? free(name, taken, nth + 1) : numbered;
};

export const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
