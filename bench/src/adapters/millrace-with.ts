import {
  type Agent,
  type AgentEvent,
  type Approver,
  createAgent,
  type EventOf,
  type Interceptor,
  isEvent,
  type Model,
  requireApproval,
  textOf,
  tool,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { type Session, sessions } from 'millrace/sessions';
import { tap } from 'rxjs';
import type { Adapter, CallOptions, Setup } from '../adapter.js';
import { lookup, question, weatherOf } from '../lookup.js';
import { readScript } from '../mock/script.js';

/** What an adapter of Millrace is made of. */
export interface Parts {
  /** Makes the model of this name. */
  readonly modelOf: (name: string) => Model;
  readonly interceptors?: readonly Interceptor[];
  /** Decides on each run of the tool. */
  readonly approve?: boolean | Approver;
  /** Returns the agent that is called instead. */
  readonly wrap?: (agent: Agent) => Agent;
}

/** An agent with one subscriber to the stream of each call. An agent is a definition: there is one for each script. */
export const millraceWith = (
  { modelOf, interceptors = [], approve = true, wrap = (agent) => agent }: Parts,
  { onModelChunk }: Setup,
): Adapter => {
  const { name, description, parameters } = lookup;
  const input = jsonSchema(parameters);
  const quick = tool({
    name,
    description,
    input,
    run: ({ city, day }) => weatherOf(city, day),
  });
  const later = tool({
    name,
    description,
    input,
    run: async ({ city, day }, { signal }) => {
      signal.throwIfAborted();
      return Promise.resolve(weatherOf(city, day));
    },
  });
  const made = (script: string) =>
    wrap(
      createAgent({
        model: onModelChunk ? counted(modelOf(script), onModelChunk) : modelOf(script),
        tools: [requireApproval(readScript(script)?.isWhole === true ? later : quick, approve)],
        use: interceptors,
        limits: { maxIterations: 1_000, parallel: 64 },
      }),
    );
  const agents = new Map<string, ReturnType<typeof made>>();
  const agentOf = (script: string) => {
    const agent = agents.get(script) ?? made(script);
    agents.set(script, agent);
    return agent;
  };

  const call = (
    asked: Pick<ReturnType<typeof made>, 'stream$'>,
    { onDelta = () => undefined, signal }: CallOptions = {},
  ): Promise<string> =>
    new Promise((resolve, reject) => {
      asked.stream$(question, signal ? { signal } : {}).subscribe({
        next: (event) => {
          if (isTextChunk(event)) onDelta(event.delta);
          else if (isEvent(event, 'postCall')) resolve(textOf(event.reply));
        },
        error: reject,
      });
    });

  return {
    call: (script, options) => call(agentOf(script), options),
    async *pull(script, { signal } = {}) {
      for await (const event of agentOf(script).stream(question, signal ? { signal } : {})) {
        if (isTextChunk(event)) yield event.delta;
      }
    },
    session: (id) => {
      const held = new Map<string, Session>();
      return {
        call: (script) => {
          const session = held.get(script) ?? sessions(agentOf(script)).open(id);
          held.set(script, session);
          return call(session);
        },
      };
    },
  };
};

const isTextChunk = (event: AgentEvent): event is EventOf<'reasoningChunk'> =>
  isEvent(event, 'reasoningChunk') && event.kind === 'text';

const counted = (model: Model, onChunk: () => void): Model => ({
  ...model,
  stream$: (request, context) => model.stream$(request, context).pipe(tap(onChunk)),
});
