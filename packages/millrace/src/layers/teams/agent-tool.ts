import { defer, map } from 'rxjs';
import { type Agent, createAgent } from '../../agent.js';
import { withOwnTools } from '../select-tools.js';
import type { EndReason, Reply } from '../../values/reply.js';
import type { OutputOf } from '../../call/callable.js';
import { misuse } from '../../values/errors.js';
import type { Input } from '../../seams/input.js';
import { defined, isRecord } from '../../values/json.js';
import type { MemoryFactory } from '../../memories/in-process-memory.js';
import { type ContentBlock, isContentBlock, textBlock, textOf } from '../../values/message.js';
import {
  checkOptions,
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
import { type AgentOptions, agentRules } from '../../call/agent-options.js';

export interface AgentToolOptions<Schema extends InputSchema = DelegationSchema> extends Pick<
  ToolPolicy,
  'exclusive' | 'dedupe'
> {
  /** Maximum time of a call, in milliseconds. Default: 600,000. */
  readonly timeoutMs?: number | undefined;
  /** When to use the agent, for the model of the calling agent. */
  readonly description: string;
  /** Name of the tool. Default: the agent's name, made valid. */
  readonly name?: string | undefined;
  /** The schema of the input. Default: `user_prompt`, `reasoning` and `context`, all strings. */
  readonly input?: Schema | undefined;
  /** Converts the tool input to the agent's input. Default: all parts as text; for your own schema, JSON. */
  readonly toPrompt?: ((input: Infer<Schema>, context: ToolContext) => Input) | undefined;
  /** Maximum nesting of agents, including the outermost. A deeper call is an error for the model. Default: 5. */
  readonly maxDepth?: number | undefined;
  /** Session id of the agent: it remembers its conversation, and concurrent calls queue. Default: no session. */
  readonly session?: string | ((context: ToolContext) => string | undefined) | undefined;
  /** Creates the memory of that session. Default: one in this process. */
  readonly memory?: MemoryFactory | undefined;
}

const delegationSchema = () =>
  jsonSchema({
    type: 'object',
    properties: {
      user_prompt: {
        type: 'string',
        minLength: 1,
        description:
          'The complete task of the agent in plain words: it does not see this conversation.',
      },
      reasoning: {
        type: 'string',
        description: 'Why you call this agent, and what you need its answer for.',
      },
      context: {
        type: 'string',
        description: 'What it needs to know for that: facts, earlier results, names, wishes.',
      },
    },
    required: ['user_prompt'],
    additionalProperties: false,
  });

export type DelegationSchema = ReturnType<typeof delegationSchema>;

/** Compiled on first use, not by an import. */
let delegation: DelegationSchema | undefined;

/**
 * Makes an agent a tool of other agents. The result is the text of its answer, or its `output` as JSON, with costs in
 * `details`. Its events are in the same stream; interrupts, demand, context values and approvals reach it. An
 * incomplete or refused answer is reported to the model in words.
 */
export const agentTool = <const Schema extends InputSchema = DelegationSchema>(
  agent: Agent,
  options: AgentToolOptions<Schema>,
): Tool => {
  if (!isAgent(agent)) throw misuse('agentTool() needs an agent, such as one from createAgent().');
  checkOptions(`agentTool() of '${agent.name}'`, options, rules, ['description']);
  const { maxDepth = 5, session, memory, toPrompt, input, description, ...rest } = options;
  const { name = fitName(agent.name), ...policy } = rest;
  const schema: InputSchema = input ?? (delegation ??= delegationSchema());
  const promptOf = (given: unknown, context: ToolContext): Input => {
    // The validator guarantees the schema's type, but no type guard can express that.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    if (toPrompt !== undefined) return toPrompt(given as Infer<Schema>, context);
    return input === undefined ? delegationPrompt(given) : JSON.stringify(given);
  };
  return tool({
    timeoutMs: 600_000,
    // The journal of the parent call records its calls, so resuming does not repeat them.
    idempotent: true,
    callsAgents: true,
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

const delegationPrompt = (given: unknown): string => {
  const { user_prompt, reasoning, context } = isRecord(given) ? given : {};
  return [
    textIn(user_prompt),
    section('Why you are called', textIn(reasoning)),
    section('Context', textIn(context)),
  ]
    .filter((part) => part !== undefined)
    .join('\n\n');
};

const textIn = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

const tooDeep = (name: string, maxDepth: number): string =>
  `Not called: agents can be nested up to ${maxDepth} deep. Do the task for '${name}' yourself, or state what is missing.`;

const rules: Readonly<Record<keyof AgentToolOptions, Rule>> = {
  description: isText,
  name: isText,
  input: [(value) => value !== null, 'a schema'],
  toPrompt: isFunction,
  maxDepth: wholeNumber(1),
  session: [
    (value) => (typeof value === 'string' && value !== '') || typeof value === 'function',
    'the id of a session, or a function that returns one',
  ],
  memory: isFunction,
  timeoutMs: isDelay,
  exclusive: isFlag,
  dedupe: isFlag,
};

/** The tool result for a reply: the answer, or why it is missing. */
const delegatedOutput = (name: string, reply: Reply): ToolOutput => {
  const { reason, iterations, toolCalls, usage, output, sources } = reply;
  const note = descriptions[reason];
  const details = {
    agent: reply.name ?? name,
    reason,
    iterations,
    toolCalls,
    usage,
    ...defined({ output, sources }),
  };
  const content = note === undefined ? answerOf(reply) : withAnswer(note(name), reply);
  return toolOutput({ content, details, isError: note !== undefined && !hasAnswer.has(reason) });
};

const answerOf = ({ content, output }: Reply): readonly ContentBlock[] => {
  if (output !== undefined) return [textBlock(JSON.stringify(output))];
  const blocks = content.filter(isContentBlock);
  return blocks.length > 0 ? blocks : [textBlock('(It returned nothing.)')];
};

const withAnswer = (what: string, reply: Reply): readonly ContentBlock[] => {
  if (reply.reason === 'suspended' || textOf(reply).trim() === '') return [textBlock(what)];
  return [textBlock(`${what} Its answer:\n`), ...answerOf(reply)];
};

/** Reasons with an answer, if incomplete. */
const hasAnswer: ReadonlySet<EndReason> = new Set(['truncated', 'maxIterations', 'budget']);

type Note = (name: string) => string;

const descriptions: Readonly<Partial<Record<EndReason, Note>>> = {
  truncated: (name) => `The answer of the agent '${name}' was cut off because it was too long.`,
  maxIterations: (name) => `The agent '${name}' has reached its maximum number of iterations.`,
  budget: (name) => `The agent '${name}' has used up its budget.`,
  interrupted: (name) => `The agent '${name}' was interrupted before it was done.`,
  stopped: (name) => `The agent '${name}' was stopped before it was done.`,
  refused: (name) => `The agent '${name}' refused to answer.`,
  suspended: (name) =>
    `The agent '${name}' waits for an external result, which cannot be provided here. Continue without it, or state what is missing.`,
};

export interface Worker extends AgentToolOptions<InputSchema> {
  readonly agent: Agent;
}

type Member = Pick<Worker, 'agent' | 'description'>;

export interface SupervisorOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends AgentOptions<Output> {
  /** The agents that it can call. Their names are made valid and unique as tool names. */
  readonly agents: readonly Worker[];
  /** Instructions above the list of agents. Default: to delegate, and to take responsibility for the answer. */
  readonly leading?: string | undefined;
  /** Maximum nesting of agents, including the outermost, for workers without their own limit. Default: 5. */
  readonly maxDepth?: number | undefined;
}

/**
 * Creates an agent that leads others, which are its tools (`agentTool`). It calls them one by one or in
 * parallel and answers from their results. A section `[Team]` in its instructions lists who can do what.
 */
export const supervisor = <const Output extends InputSchema | undefined = undefined>(
  options: SupervisorOptions<Output>,
): Agent<OutputOf<Output, undefined>> => {
  checkOptions('supervisor()', options, supervisorRules, ['model', 'agents']);
  const { agents, leading: teamInstructions = defaultInstructions, maxDepth = 5, ...own } = options;
  checkMembers('supervisor()', agents);
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
  const team = section('Team', `${teamInstructions}\n${list.join('\n')}`) ?? '';
  const withInstructions: AgentOptions<Output> = {
    ...own,
    name,
    instructions: [instructions ?? [], team].flat(),
  };
  return createAgent<Output>(withOwnTools(withInstructions, workers));
};

const defaultInstructions =
  'You lead a team of agents. Call each one with the tool of its name. Give each the tasks that it is good at, several in parallel if they are independent, with everything that it needs to know: agents do not see this conversation. Judge their results, and write the answer yourself.';

export const checkMembers = (owner: string, members: readonly Member[]): void => {
  const isMember = (it: unknown): boolean =>
    isRecord(it) && isAgent(it['agent']) && typeof it['description'] === 'string';
  if (members.length > 0 && members.every(isMember)) return;
  throw misuse(`${owner}: 'agents' must be a list of { agent, description: 'what it is for' }.`);
};

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

/** Valid, unique tool names for texts, except those in `taken`. */
export const fitNames = (
  texts: readonly string[],
  taken: readonly string[] = [],
): readonly string[] =>
  texts
    .reduce<readonly string[]>((names, text) => [...names, uniqueName(fitName(text), names)], taken)
    .slice(taken.length);

const uniqueName = (name: string, taken: readonly string[], nth = 1): string => {
  const suffix = nth === 1 ? '' : `_${nth}`;
  const numbered = name.slice(0, 64 - suffix.length) + suffix;
  return taken.includes(numbered) ? uniqueName(name, taken, nth + 1) : numbered;
};

export const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
