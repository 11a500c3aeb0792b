import { type Agent, MillraceError, tool, type Tool, type ToolContext } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { agentTool } from 'millrace/teams';
import { map, type Observable } from 'rxjs';

/** An agent that the model may give a task to. */
export interface TaskAgent {
  /** Its name for the model, unique. */
  readonly name: string;
  /** When to use it, for the model. */
  readonly description: string;
  readonly agent: Agent;
}

/**
 * Creates the tool `task`, which gives a task to one of several agents. Each has a context of its own, sees only the task,
 * and returns only its answer. Several tasks of one message run in parallel. Throws a `config` error if two agents have
 * one name, or if there is no agent.
 */
export const taskTool = (agents: readonly TaskAgent[]): Tool => {
  const byName = new Map(
    agents.map(({ name, description, agent }) => [name, agentTool(agent, { description })]),
  );
  if (byName.size < agents.length || agents.length === 0) {
    throw new MillraceError(
      'config',
      "taskTool() takes a list of agents with different names: { name, description, agent }. 'general' is that of deepAgent().",
    );
  }
  const list = agents.map(({ name, description }) => `- ${name}: ${description}`);
  return tool({
    name: 'task',
    idempotent: true,
    callsAgents: true,
    timeoutMs: 600_000,
    description:
      'Gives a task to an agent with a context of its own, and returns its answer. Use it for a part that takes many ' +
      `steps, and call it several times in one message for independent parts. The agents are:\n${list.join('\n')}`,
    input: jsonSchema({
      type: 'object',
      properties: {
        agent: { type: 'string', enum: agents.map(({ name }) => name) },
        task: {
          type: 'string',
          minLength: 1,
          maxLength: 100_000,
          description:
            'The whole task, with all that the agent needs to know: it does not see this conversation. State what ' +
            'its answer should have, and in which file it should write long results.',
        },
      },
      required: ['agent', 'task'],
      additionalProperties: false,
    }),
    run: ({ agent, task }, context) => answer$(byName.get(agent), task, context),
  });
};

const answer$ = (
  agent: Tool | undefined,
  task: string,
  context: ToolContext,
): Observable<unknown> => {
  // The schema has the names.
  if (agent === undefined) throw new Error('There is no such agent.');
  return agent
    .run$({ user_prompt: task }, context)
    .pipe(map((emission) => (emission.type === 'output' ? emission.output : emission.value)));
};
