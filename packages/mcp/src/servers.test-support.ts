import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type AgentEvent, createAgent, isEvent, type Layer, type Reply } from 'millrace';
import { record, scriptedModel, text, toolCall } from 'millrace/testing';
import type { McpOptions, McpServer } from './server-options.js';

const { resolve } = createRequire(import.meta.url);
const hostileServer = join(import.meta.dirname, 'hostile-server.test-support.mjs');

type Further = Partial<McpOptions> & { readonly env?: Readonly<Record<string, string>> };

/** A server that does what its kind says, see hostile-server.test-support.mjs. */
export const hostile = (kind: string, { env, ...options }: Further = {}): McpServer => ({
  name: 'bad',
  stdio: { command: process.execPath, args: [hostileServer, kind], ...(env && { env }) },
  ...options,
});

export const calm = (options: Partial<McpOptions> = {}): McpServer => ({
  ...hostile('calm'),
  name: 'calm',
  ...options,
});

/** A published server. */
export const published = (
  server: 'everything' | 'filesystem',
  args: readonly string[],
  options: Partial<McpOptions> = {},
): McpServer => ({
  name: server,
  stdio: {
    command: process.execPath,
    args: [resolve(`@modelcontextprotocol/server-${server}/dist/index.js`), ...args],
  },
  ...options,
});

export interface Ran {
  readonly reply: Reply;
  readonly events: readonly AgentEvent[];
  /** The names of the tools of each request. */
  readonly tools: readonly (readonly string[])[];
  readonly descriptions: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
  /** The text of each result, by the name of the tool. */
  readonly results: Readonly<Record<string, string>>;
}

type Calls = readonly (readonly [name: string, input?: Readonly<Record<string, unknown>>])[];

/** An agent with these layers, whose model makes these tool calls: one list of them for each turn. */
export const ran = async (layers: readonly Layer[], ...turns: readonly Calls[]): Promise<Ran> => {
  const model = scriptedModel(
    ...turns.map((calls) => calls.map(([name, input]) => toolCall(name, input))),
    [text('done')],
  );
  const agent = createAgent({ model, use: layers, limits: { maxIterations: 50 } });
  const events = await record(agent.stream$('?'));
  const ended = events.findLast((event) => isEvent(event, 'postCall'));
  if (ended === undefined || !isEvent(ended, 'postCall')) throw new Error('The call has no reply.');
  return {
    reply: ended.reply,
    events,
    tools: model.requests.map(({ tools = [] }) => tools.map(({ name }) => name)),
    descriptions: Object.fromEntries(
      model.requests[0]?.tools?.map(({ name, description }) => [name, description]) ?? [],
    ),
    warnings: events.flatMap((event) => (isEvent(event, 'warning') ? [event.message] : [])),
    results: Object.fromEntries(
      ended.reply.toolCalls.map(({ name, output }) => [name, String(output)]),
    ),
  };
};
