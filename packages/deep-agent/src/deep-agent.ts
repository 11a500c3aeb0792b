import {
  type Agent,
  type AgentOptions,
  createAgent,
  type InputSchema,
  MillraceError,
  type OutputOf,
} from 'millrace';
import { withPlan } from 'millrace/planning';
import { checkOptions, isRecord, wholeNumber } from 'millrace/values';
import { skills as skillsLayer } from '@millrace/skills';
import { fileSystem, type FilesOf, isFiles } from './file-layer.js';
import { filesInMemory } from './files-in-memory.js';
import { type TaskAgent, taskTool } from './task-tool.js';

/** A sub-agent: a finished one, or its options. The model, the limits and the plan are those of the deep agent unless it has its own. */
export interface SubAgent extends Partial<Omit<AgentOptions, 'name'>> {
  /** Its name for the model, unique. */
  readonly name: string;
  /** When to use it, for the model. */
  readonly description: string;
  /** Used as it is. The other options must then be absent. */
  readonly agent?: Agent | undefined;
}

/** Options of `deepAgent`: those of an agent, and its parts. */
export interface DeepAgentOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends AgentOptions<Output> {
  /** The files, in a sandbox if it should run code. Default: in this process, for all calls of the agent together. */
  readonly files?: FilesOf | undefined;
  /** Sub-agents, besides `general`, which has its model and its tools. Default: none. */
  readonly agents?: readonly SubAgent[] | undefined;
  /** Skills, as `skills()` of `@millrace/skills` takes them, also for `general`. Default: none. */
  readonly skills?: Parameters<typeof skillsLayer>[0] | undefined;
  /** The length from which tool results are moved to files, in characters. Default: 10,000. */
  readonly offloadAbove?: number | undefined;
}

/**
 * Creates an agent for long tasks. The model keeps a plan (`withPlan`), works with files (`fileSystem`), which hold large
 * tool results, too, gives parts to sub-agents by the tool `task` (`taskTool`), and reads skills. Sub-agents have a
 * context of their own, and share the files. 50 iterations by default, for each agent. Throws a `config` error if an
 * option is invalid.
 *
 * @example
 * ```ts
 * const agent = deepAgent({ model, tools: [search], files: filesInMemory({ memory: store.memory }) });
 * const reply = await agent.call('Compare the three vendors, and write a report.');
 * ```
 */
export const deepAgent = <const Output extends InputSchema | undefined = undefined>(
  options: DeepAgentOptions<Output>,
): Agent<OutputOf<Output, undefined>> => {
  const { files = filesInMemory(), agents = [], skills, offloadAbove, ...own } = options;
  checkOptions("deepAgent(): the option 'files' and others", { files, offloadAbove }, rules);
  checkAgents(agents);
  const reading = skills === undefined ? [] : [skillsLayer(skills)];
  const { model, tools = [], instructions, limits } = own;
  const inherited: AgentOptions = { model, limits: { ...defaultLimits, ...limits } };
  const general: SubAgent = {
    name: 'general',
    description: 'Any task, with the same tools.',
    tools,
    use: reading,
    ...(instructions !== undefined && { instructions }),
  };
  const task = taskTool([general, ...agents].map((each) => toTaskAgent(each, inherited)));
  return createAgent<Output>(
    withPlan<Output>({
      ...own,
      limits: inherited.limits,
      instructions: [instructions ?? [], guidance].flat(),
      tools: [...tools, task],
      use: [fileSystem(files, { offloadAbove }), ...reading, ...(own.use ?? [])],
    }),
  );
};

const rules = { files: isFiles, offloadAbove: wholeNumber(500) };

const defaultLimits = { maxIterations: 50 };

const guidance =
  'For a task of several steps, create a plan first, and keep it up to date. Write findings and long texts to files ' +
  'instead of keeping them in the conversation. Give parts that take many steps to agents with the tool task.';

const toTaskAgent = (
  { name, description, agent, ...own }: SubAgent,
  inherited: AgentOptions,
): TaskAgent => ({
  name,
  description,
  agent: agent ?? createAgent(withPlan({ ...inherited, ...own, name })),
});

const checkAgents = (agents: unknown): void => {
  const isSubAgent = (it: unknown): boolean =>
    isRecord(it) && typeof it['name'] === 'string' && typeof it['description'] === 'string';
  if (Array.isArray(agents) && agents.every(isSubAgent)) return;
  throw new MillraceError(
    'config',
    "deepAgent(): 'agents' must be a list of { name, description: 'what it is for', … } with the options of an agent.",
  );
};
