import { type AgentOptions, agentRules } from '../agent-options.js';
import { type Agent, createAgent } from '../agent.js';
import type { CallInfo } from '../call-info.js';
import type { OutputOf } from '../callable.js';
import { misuse } from '../errors.js';
import { isRecord } from '../json.js';
import { checkOptions, defined, isText, listOf, type Rule, wholeNumber } from '../options.js';
import { section } from '../prompt/assemble.js';
import type { InputSchema } from '../schema.js';
import { namesOf } from '../tools/live-toolkit.js';
import { withOwnTools } from '../with-own-tools.js';
import { agentTool, type AgentToolOptions, isAgent } from './agent-tool.js';
import { fitNames, oneLine } from './fit-name.js';

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

/**
 * Makes an agent that leads others: each of them is a tool of its (`agentTool`), so that it asks them one by one or several at once, and answers
 * from what they say. Its instructions have a section `[Team]` with who can do what.
 */
export const supervisor = <const Output extends InputSchema | undefined = undefined>(
  options: SupervisorOptions<Output>,
): Agent<OutputOf<Output, undefined>> => {
  checkOptions('supervisor()', options, rules, ['model', 'agents']);
  const { agents, leading = lead, maxDepth = 5, ...own } = options;
  if (agents.length === 0 || !agents.every(isWorker)) throw noWorkers();
  const { name = 'supervisor', tools = [], instructions } = own;
  const names = fitNames(
    agents.map((worker) => worker.name ?? worker.agent.name),
    namesOf([...tools, ...(own.defaults?.tools ?? [])]),
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

const rules: Readonly<Record<keyof SupervisorOptions, Rule>> = {
  ...agentRules,
  agents: listOf('agents with their descriptions'),
  leading: isText,
  maxDepth: wholeNumber(1),
};
