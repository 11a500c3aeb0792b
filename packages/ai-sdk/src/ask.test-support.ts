import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { type AgentEvent, createAgent, type Reply, tool } from 'millrace';
import { z } from 'zod';
import { type AiSdkLanguageModel, type AiSdkModelOptions, aiSdkModel } from './index.js';
import { type Response, serve, type VendorServer } from './serve.test-support.js';

let servers: VendorServer[] = [];
/** Closes all servers of a test. */
export const closeServers = async (): Promise<void> => {
  await Promise.all(servers.map((it) => it.close()));
  servers = [];
};

export type Make = (baseURL: string) => AiSdkLanguageModel;
const apiKey = 'test';
export const chat: Make = (baseURL) => createOpenAI({ apiKey, baseURL }).chat('gpt-5-mini');
export const responses: Make = (baseURL) =>
  createOpenAI({ apiKey, baseURL }).responses('gpt-5-mini');
export const claude: Make = (baseURL) => createAnthropic({ apiKey, baseURL })('claude-sonnet-4-5');

export const serving = async (...list: readonly Response[]): Promise<VendorServer> => {
  const server = await serve(...list);
  servers.push(server);
  return server;
};

interface Ended {
  readonly reply?: Reply;
  readonly error?: unknown;
  readonly events: readonly AgentEvent[];
  /** The inputs that the tool `weather` ran with. */
  readonly runs: readonly unknown[];
  readonly server: VendorServer;
}

const input = z.object({ city: z.string(), days: z.number().default(1) });

/** Calls an agent with a tool `weather`. Nothing is retried, so an error is seen. */
export const ask = async (
  make: Make,
  list: readonly Response[],
  options: AiSdkModelOptions = {},
  more: Partial<Parameters<typeof createAgent>[0]> = {},
): Promise<Ended> => {
  const server = await serving(...list);
  const runs: unknown[] = [];
  const run = (given: unknown): string => (runs.push(given), 'Snow.');
  const weather = tool({ name: 'weather', description: 'w', input, run });
  const model = aiSdkModel(make(server.url), { retry: false, ...options });
  const agent = createAgent({ tools: [weather], ...more, model });
  const events: AgentEvent[] = [];
  const subscription = agent.events$.subscribe((it) => events.push(it));
  const ended = await agent.call('Weather?').then(
    (reply) => ({ reply }),
    (error: unknown) => ({ error }),
  );
  subscription.unsubscribe();
  return { ...ended, events, runs, server };
};
export const cutOff = { code: 'invalidResponse', retryable: true };
export const oslo = '{"city":"Oslo"}';
