import {
  type Agent,
  type AgentOptions,
  createAgent,
  type InputSchema,
  MillraceError,
  type OutputOf,
} from 'millrace';
import { withPlan } from 'millrace/planning';
import { checkOptions, defined, having, isRecord, wholeNumber } from 'millrace/values';
import { skills as skillsLayer } from '@millrace/skills';
import { fileSystem, type FilesOf, isFiles } from './file-layer.js';
import { filesBySession } from './files-by-session.js';
import { type TaskAgent, taskTool } from './task-tool.js';

/** A sub-agent: a finished one, or its options. The model and each limit are those of the deep agent unless it has its own. */
export interface SubAgent extends Partial<Omit<AgentOptions, 'name'>> {
  /** Its name for the model, unique. */
  readonly name: string;
  /** When to use it, for the model. */
  readonly description: string;
  /** Used as it is. Other options than `name` and `description` must then be absent. */
  readonly agent?: Agent | undefined;
}

/** Options of `deepAgent`: those of an agent, and its parts. */
export interface DeepAgentOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends AgentOptions<Output> {
  /**
   * The files, in a sandbox if it should run code. A file system is shared by all calls of the agent, so by all of its users. Default: in this
   * process, apart for each session, or for each call without one; those of the 100 sessions and calls that were used last are kept.
   */
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
 * context of their own, and share the files of the call. 50 iterations by default, for each agent. Throws a `config` error if an
 * option is invalid.
 *
 * @example
 * ```ts
 * const files = ({ sessionId: id }) => filesInMemory({ memory: store.memory, id });
 * const agent = deepAgent({ model, tools: [search], files });
 * const reply = await agent.call('Compare the three vendors, and write a report.');
 * ```
 */
export const deepAgent = <const Output extends InputSchema | undefined = undefined>(
  options: DeepAgentOptions<Output>,
): Agent<OutputOf<Output, undefined>> => {
  const { files = filesBySession(), agents = [], skills, offloadAbove, ...own } = options;
  checkOptions("deepAgent(): the option 'files' and others", { files, offloadAbove }, rules);
  checkAgents(agents);
  const reading = skills === undefined ? [] : [skillsLayer(skills)];
  const { model, tools = [], instructions, limits } = own;
  const inherited: AgentOptions = { model, limits: { ...defaultLimits, ...defined(limits ?? {}) } };
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
  agent:
    agent ??
    createAgent(
      withPlan({
        ...inherited,
        ...defined(own),
        limits: { ...inherited.limits, ...defined(own.limits ?? {}) },
        name,
      }),
    ),
});

const checkAgents = (agents: unknown): void => {
  if (Array.isArray(agents) && agents.every(isSubAgent)) {
    agents.forEach(checkFinished);
    return;
  }
  throw new MillraceError(
    'config',
    "deepAgent(): 'agents' must be a list of { name, description: 'what it is for', … } with the options of an agent.",
  );
};

const isSubAgent = (it: unknown): it is SubAgent =>
  isRecord(it) && typeof it['name'] === 'string' && typeof it['description'] === 'string';

/** A finished agent would ignore other options. */
const checkFinished = ({ name, description: _, agent, ...others }: SubAgent): void => {
  if (agent === undefined) return;
  const owner = `deepAgent(): the sub-agent '${name}'`;
  checkOptions(owner, { agent }, { agent: having('call$', 'an agent') });
  const ignored = Object.keys(defined(others));
  if (ignored.length === 0) return;
  throw new MillraceError(
    'config',
    `${owner} has an 'agent', which would ignore: ${ignored.join(', ')}. Set them in that agent's own options, or leave out 'agent'.`,
  );
};
