import { type Agent, type AgentOptions, createAgent, type ModelChunk } from 'millrace';
import { type ScriptedAnswer, scriptedModel } from 'millrace/testing';
import OpenAI from 'openai';
import { ReplaySubject } from 'rxjs';
import { chatServer, type ChatServer, type ChatServerOptions } from '../chat/index.js';
import { openAi } from './index.js';

const servers: ChatServer[] = [];

/** Closes the servers of a test. */
export const closeServers = () =>
  Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 })));

/** The SDK of OpenAI, over a server in this process. */
export const clientOf = (server: ChatServer, apiKey = 'none') => {
  servers.push(server);
  const fetch = (input: string | URL | Request, init?: RequestInit) =>
    server.respond(new Request(input, init));
  return new OpenAI({ apiKey, baseURL: 'http://localhost/v1', fetch });
};

/** An agent with a script, its server and a client. */
export const serving = (
  answers: readonly ScriptedAnswer[],
  agent: Omit<AgentOptions, 'model'> = {},
  options: ChatServerOptions = {},
) => {
  const model = scriptedModel(...answers);
  const served: Agent = createAgent({ name: 'helper', model, ...agent });
  const errors: string[] = [];
  const onError = ({ code }: Error & { code: string }): void => void errors.push(code);
  const server = chatServer(served, { protocols: [openAi()], onError, ...options });
  return { model, server, errors, client: clientOf(server) };
};

/** A model that answers piece by piece, and ends when it is told to. */
export const held = () => {
  const piece$ = new ReplaySubject<ModelChunk>(Infinity);
  return {
    answer: () => piece$,
    isHeard: () => piece$.observed,
    say: (text: string) => piece$.next({ type: 'text', text }),
    give: (chunk: ModelChunk) => piece$.next(chunk),
    end: () => {
      piece$.next({ type: 'finish', finish: 'stop' });
      piece$.complete();
    },
  };
};

export const weather = {
  name: 'weather',
  description: 'The weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
} as const;

/** Posts a body as it is. */
export const post = (server: ChatServer, path: string, body: string) =>
  server.respond(
    new Request(`http://localhost/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    }),
  );
