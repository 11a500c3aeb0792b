import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { anthropic } from '@millrace/anthropic';
import { createAgent, type Model } from 'millrace';
import { openai } from '@millrace/openai';
import { openSite, type Site } from '../driver/serving.js';
import { type Attack, scene } from '../scene.js';

const key = 'sk-SECRET-1234567890abcdef';
const name = 'gpt-5-mini';

/** The key where programs put it. */
const models: Readonly<Record<string, (baseURL: string) => Model>> = {
  openai: (baseURL) => openai(name, { apiKey: key, baseURL, retry: false }),
  'openai.chat': (baseURL) => openai.chat(name, { apiKey: key, baseURL, retry: false }),
  anthropic: (baseURL) => anthropic('claude-sonnet-4-5', { apiKey: key, baseURL, retry: false }),
  'a key from a function': (baseURL) => openai(name, { apiKey: () => key, baseURL, retry: false }),
  'a key in headers': (baseURL) =>
    openai(name, {
      apiKey: 'none',
      baseURL,
      retry: false,
      headers: { authorization: `Token ${key}`, 'x-api-key': key },
    }),
  'a key in the path': (baseURL) =>
    openai(name, { apiKey: 'none', baseURL: baseURL.replace('/v1', `/${key}/v1`), retry: false }),
  'a key in the body': (baseURL) =>
    openai(name, { apiKey: 'none', baseURL, retry: false, body: { api_key: key } }),
};

const keyIn = ({ headers }: IncomingMessage): string =>
  [headers.authorization, headers['x-api-key']].filter(Boolean).join(' ');

const json = { 'content-type': 'application/json' };
const answering =
  (
    status: number,
    headers: (sent: string) => Readonly<Record<string, string>>,
    body: (sent: string) => string,
  ) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    const sent = keyIn(request);
    response.writeHead(status, { ...headers(sent) }).end(body(sent));
  };

/** What a hostile or careless provider answers. */
const providers: Readonly<Record<string, RequestListener>> = {
  'an error with the key': answering(
    401,
    () => json,
    (sent) =>
      JSON.stringify({ error: { message: `Incorrect key: ${sent}`, code: 'invalid_api_key' } }),
  ),
  'an error in plain text': answering(500, () => ({ 'content-type': 'text/plain' }), String),
  'an error as a page': answering(
    500,
    () => ({ 'content-type': 'text/html' }),
    (sent) => `<html>${sent}</html>`,
  ),
  'a redirect with the key': answering(
    307,
    (sent) => ({ location: `http://127.0.0.1:1/?k=${encodeURIComponent(sent)}` }),
    () => '',
  ),
  'a connection that is cut': ({ socket }) => void socket.destroy(),
  'broken JSON': answering(
    200,
    () => json,
    (sent) => `{"k": "${sent}"`,
  ),
  'an error in the stream': answering(
    200,
    () => ({ 'content-type': 'text/event-stream' }),
    (sent) => `data: ${JSON.stringify({ error: { message: `bad key ${sent}` } })}\n\n`,
  ),
  'the key in a header of an error': answering(
    429,
    (sent) => ({ ...json, 'x-echo': sent }),
    () => '{"error":{"message":"slow"}}',
  ),
  'the key as the id of the request': answering(
    418,
    (sent) => ({ 'content-type': 'text/plain', 'x-request-id': sent }),
    () => 'x',
  ),
};

interface World {
  readonly site: Site;
  answer: RequestListener;
}

const open = async (): Promise<World> => {
  const unanswered: RequestListener = () => undefined;
  const world = { answer: unanswered };
  const site = await openSite((request, response) => {
    request.resume();
    world.answer(request, response);
  });
  return Object.assign(world, { site });
};

/** Everything that a program may print, log or store of a call. */
const shownOf = async (model: Model): Promise<Readonly<Record<string, string>>> => {
  const agent = createAgent({ model });
  const events: unknown[] = [];
  const subscription = agent.events$.subscribe({
    next: (event) => events.push(event),
    error: (error: unknown) => events.push(error),
  });
  const error: unknown = await agent.call('Hi.').then(
    () => 'the call succeeded',
    (reason: unknown) => reason,
  );
  subscription.unsubscribe();
  const names = error instanceof Error ? Object.getOwnPropertyNames(error) : [];
  const options = { depth: 20, showHidden: true, getters: true };
  return {
    'the model': inspect(model, options) + JSON.stringify(model),
    'the agent': inspect(agent, options) + JSON.stringify(agent),
    'the error': inspect(error, options) + JSON.stringify(error) + JSON.stringify(error, names),
    'the stack': error instanceof Error ? `${error.message}${error.stack ?? ''}` : String(error),
    'the events': inspect(events, options) + JSON.stringify(events),
  };
};

const echoed =
  (model: (baseURL: string) => Model, listener: RequestListener): Attack<World> =>
  async (world) => {
    world.answer = listener;
    const shown = await shownOf(model(`${world.site.origin}/v1`));
    const leak = Object.entries(shown).find(([, content]) => content.includes(key));
    if (leak !== undefined) {
      const [place, content] = leak;
      const at = content.indexOf(key);
      return `${place}: ${content.slice(Math.max(0, at - 100), at + 30)}`;
    }
    return shown['the error']?.includes('the call succeeded') ? 'no error came' : undefined;
  };

export const keyScenes = [
  scene({
    rule: 'X10',
    promise: 'A key appears nowhere, even if a provider echoes it',
    open,
    close: ({ site }) => site.close(),
    attacks: Object.fromEntries(
      Object.entries(models).flatMap(([place, model]) =>
        Object.entries(providers).map(([about, listener]) => [
          `${place}: ${about}`,
          echoed(model, listener),
        ]),
      ),
    ),
  }),
];
