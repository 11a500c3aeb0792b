import { AsyncLocalStorage } from 'node:async_hooks';
import { createAgent, type Layer, type Model, tool } from 'millrace';
import { sessions } from 'millrace/sessions';
import { finish, text, toolCall } from 'millrace/testing';
import { createSemaphore, limitCalls, limitConcurrency } from 'millrace/traffic';
import { asyncScheduler, concat, defer, observeOn, of } from 'rxjs';
import { scene } from '../scene.js';

const users = ['ann', 'bob', 'cem'];
const tenant = new AsyncLocalStorage<string>();
const who = tool({ name: 'who', description: 'Who asks.', run: () => tenant.getStore() ?? 'none' });

const model: Model = {
  name: 'asking',
  stream$: ({ messages }) =>
    defer(() =>
      concat(
        of(messages.at(-1)?.role === 'tool' ? text('Fine.') : toolCall('who', {}, 'w')),
        of(finish()),
      ).pipe(observeOn(asyncScheduler)),
    ),
};

type Ask = () => Promise<{ readonly toolCalls: readonly { readonly output: string }[] }>;

/** Three users share what waits. Each tool must see the user of its own call. */
const sharing = (open: () => Ask) => async (): Promise<string | undefined> => {
  const ask = open();
  const seen = await Promise.all(
    users.map((user) => tenant.run(user, async () => (await ask()).toolCalls[0]?.output)),
  );
  return seen.join() === users.join()
    ? undefined
    : `the tools of ${users.join()} saw ${seen.join()}`;
};

const agentWith = (options: { readonly model?: Model; readonly use?: readonly Layer[] } = {}) =>
  createAgent({ model, tools: [who], ...options });

export const tenantScenes = [
  scene<unknown>({
    rule: 'I21',
    promise: 'A tool runs in the async context of the user whose call it is',
    open: () => undefined,
    attacks: {
      'a limit of requests': sharing(() => {
        const agent = agentWith({ model: limitConcurrency(1)(model) });
        return () => agent.call('Who am I?');
      }),
      'a limit of calls': sharing(() => {
        const agent = agentWith({ use: [limitCalls(createSemaphore({ max: 1 }))] });
        return () => agent.call('Who am I?');
      }),
      'the queue of a session': sharing(() => {
        const chats = sessions(agentWith(), { onBusy: 'queue' });
        return () => chats.open('room').call('Who am I?');
      }),
    },
  }),
];
