import { a2a } from '@millrace/a2a/server';
import { createAgent } from 'millrace';
import { type ScriptedModel, scriptedModel, text } from 'millrace/testing';
import { agUi } from '@millrace/server/ag-ui';
import { openAi } from '@millrace/server/openai';
import { openFiles } from '@millrace/store';
import { postJson, send } from '../driver/http.js';
import { type Serving, serving, userOf } from '../driver/serving.js';
import { openDirectory, removeDirectory } from '../driver/temporary.js';
import { textOf } from '../driver/values.js';
import { type Attack, scene } from '../scene.js';

const secret = 'The diagnosis is F32.1.';

interface World {
  readonly served: Serving;
  readonly model: ScriptedModel;
  readonly directory: string;
  /** The id of Ann's response. Eve may have guessed it. */
  readonly response: string;
}

const as = (user: string) => ({ authorization: user, 'a2a-version': '1.0' });
const question = (content: string) => ({
  id: 'own',
  messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text: content }] }],
});

const open = async (): Promise<World> => {
  const directory = await openDirectory();
  const model = scriptedModel(...Array.from({ length: 99 }, () => [text('Noted.')]));
  const served = await serving(createAgent({ name: 'helper', model }), {
    store: openFiles(directory),
    protocols: [openAi(), agUi(), a2a({})],
    user: userOf,
  });
  const ann = (path: string, body: unknown) => postJson(served.url + path, body, as('ann'));
  const response = textOf(
    (await ann('/v1/responses', { model: 'helper', input: secret, store: true })).text,
    'id',
  );
  await ann('/api/chat', question(secret));
  return { served, model, directory, response };
};

/** Eve sends what Ann could send. `RESPONSE` and `CALL` are Ann's ids. */
const eve =
  (method: string, path: string, body?: unknown): Attack<World> =>
  async ({ served, model, response }) => {
    const fill = (template: string): string =>
      template.replaceAll('RESPONSE', response).replaceAll('CALL', response.replace('resp_', ''));
    const before = model.requests.length;
    const answer = await send(served.url, {
      path: fill(path),
      method,
      headers: { 'content-type': 'application/json', ...as('eve') },
      ...(body !== undefined && { body: fill(JSON.stringify(body)) }),
    });
    if (answer.status === 0) return `the server cut the connection: ${answer.text}`;
    if (answer.text.includes(secret)) return `Eve reads ${answer.text.slice(0, 200)}`;
    const asked = JSON.stringify(model.requests.slice(before));
    return asked.includes(secret) ? 'the model answers Eve with what Ann has said' : undefined;
  };

const rpc = (method: string, params: unknown) =>
  eve('POST', '/api/a2a', { jsonrpc: '2.0', id: 1, method, params });

/** Whatever Eve has tried, Ann still has it all. */
const annReads: Attack<World> = async ({ served, response }) => {
  const own = await send(`${served.url}/api/chat/own`, { headers: as('ann') });
  const stored = await send(`${served.url}/v1/responses/${response}`, { headers: as('ann') });
  return own.text.includes(secret) && stored.status === 200
    ? undefined
    : `Ann gets ${own.status} and ${stored.status}`;
};

const connect = { threadId: 'own', runId: 'r', messages: [], tools: [], context: [], state: {} };

export const otherUserScenes = [
  scene({
    rule: 'S3',
    promise: 'A user reads, continues and stops only conversations of their own',
    open,
    close: async ({ served, directory }) => {
      served.close();
      await removeDirectory(directory);
    },
    attacks: {
      'the history of a chat': eve('GET', '/api/chat/own'),
      'the running call of a chat': eve('GET', '/api/chat/own/stream'),
      'steering a chat': eve('POST', '/api/chat/own/steer', { text: 'x' }),
      'stopping a chat': eve('POST', '/api/chat/own/stop', {}),
      'regenerating a message of a chat': eve('POST', '/api/chat', {
        ...question('x'),
        trigger: 'regenerate-message',
        messageId: 'CALL',
      }),
      ...Object.fromEntries(
        ['..%2Fann%2Fown', 'ann%2Fown', '%2e%2e%2fann%2fown', '..', '%2e%2e', 'ann_002fown'].map(
          (id) => [`the chat with the id ${id}`, eve('GET', `/api/chat/${id}`)],
        ),
      ),
      'reading a response': eve('GET', '/v1/responses/RESPONSE'),
      'streaming a response': eve('GET', '/v1/responses/RESPONSE?stream=true'),
      'the input of a response': eve('GET', '/v1/responses/RESPONSE/input_items'),
      'cancelling a response': eve('POST', '/v1/responses/RESPONSE/cancel', {}),
      'deleting a response': eve('DELETE', '/v1/responses/RESPONSE'),
      'continuing a response': eve('POST', '/v1/responses', {
        model: 'helper',
        input: 'Repeat it.',
        previous_response_id: 'RESPONSE',
      }),
      'continuing a conversation': eve('POST', '/v1/responses', {
        model: 'helper',
        input: 'Repeat it.',
        conversation: 'own',
      }),
      'connecting to a thread of AG-UI': eve('POST', '/api/ag-ui/connect', connect),
      'reading a task of A2A': rpc('GetTask', { id: 'CALL' }),
      'cancelling a task of A2A': rpc('CancelTask', { id: 'CALL' }),
      'following a task of A2A': rpc('SubscribeToTask', { id: 'CALL' }),
      'listing the tasks of A2A': rpc('ListTasks', {}),
      'destroying what Ann has': annReads,
    },
  }),
];
