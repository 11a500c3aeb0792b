import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, textOf } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel, text } from 'millrace/testing';
import { firstValueFrom, NEVER, of, toArray } from 'rxjs';
import { chatServer, type ChatServer, type ChatServerOptions } from './index.js';

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

const serving = (answers: readonly ScriptedAnswer[], options: ChatServerOptions = {}) => {
  const calls = createCallStore(inProcessCalls());
  const sessions = inProcessSessions();
  const model = scriptedModel(...answers);
  const agent = createAgent({ model });
  const server = chatServer(agent, {
    store: { calls, sessions },
    user: ({ headers }) => headers.get('authorization') ?? 'ann',
    ...options,
  });
  servers.push(server);
  const send = (method: string, path: string, body?: object, user = 'ann') =>
    server.respond(
      new Request(`http://localhost/api/chat${path}`, {
        method,
        headers: { authorization: user, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );
  const json = async (method: string, path: string, body?: object, user?: string) => {
    const response = await send(method, path, body, user);
    const read: unknown = await response.json();
    return { status: response.status, ...(read as Body) };
  };
  const ask = async (id: string, words: string, user?: string) => {
    const parts = [{ type: 'text', text: words }];
    const messages = [{ id: `${id}-${words.slice(0, 8)}`, role: 'user', parts }];
    const response = await send('POST', '', { id, messages }, user);
    return response.text();
  };
  const ids = async (query = '', user?: string) => {
    const { chats = [] } = await json('GET', query, undefined, user);
    return chats.map(({ id }) => id);
  };
  return { calls, sessions, model, server, send, json, ask, ids };
};

interface Body {
  readonly chats?: readonly { readonly id: string }[];
  readonly next?: string;
  readonly messages?: readonly object[];
}

const answers = (count: number) => Array.from({ length: count }, () => [text('So.')]);

describe('S12: the conversations of a user', () => {
  it('are listed, the latest first, with their first words, page by page', async () => {
    const { ask, json, ids } = serving(answers(5));
    for (const id of ['a', 'b', 'c']) await ask(id, `Question ${id} about tea`);
    await ask('other', 'Secret', 'bob');
    await ask('a', 'More');
    expect(await ids()).toEqual(['a', 'c', 'b']);
    const { chats, next } = await json('GET', '?limit=2');
    expect(chats).toMatchObject([
      { title: 'Question a about tea' },
      { title: 'Question c about tea' },
    ]);
    expect(await ids(`?limit=2&before=${encodeURIComponent(next ?? '')}`)).toEqual(['b']);
    expect(await ids('?search=QUESTION%20B')).toEqual(['b']);
    expect(await ids('?search=%25')).toEqual([]);
    expect(await ids('', 'bob')).toEqual(['other']);
    for (const query of ['?limit=0', '?limit=x', '?before=x', `?search=${'x'.repeat(1_001)}`]) {
      expect(await json('GET', query)).toMatchObject({ status: 400 });
    }
  });

  it('have a title from the first call on: from the question, the user or the application', async () => {
    const { ask, json } = serving(answers(2), {
      title: (messages) => of(`About: ${messages.map(textOf).join(' ')}`),
    });
    await ask('a', 'Tea');
    expect(await json('GET', '')).toMatchObject({ chats: [{ title: 'About: Tea So.' }] });
    expect(await json('PATCH', '/a', { title: ' My\ntea ' })).toMatchObject({ title: 'My tea' });
    await ask('a', 'More');
    expect(await json('GET', '')).toMatchObject({ chats: [{ title: 'My tea' }] });
    expect(await json('PATCH', '/x', { title: 'No' })).toMatchObject({ status: 404 });
    expect(await json('PATCH', '/a', { title: '  ' })).toMatchObject({ status: 400 });
  });

  it('are listed while their first call runs', async () => {
    const { ask, ids, json } = serving([() => NEVER]);
    void ask('a', 'Tea with milk');
    while ((await ids()).length === 0) await setImmediate();
    expect(await json('GET', '?search=MILK')).toMatchObject({
      chats: [{ title: 'Tea with milk' }],
    });
    expect(await ids('?search=juice')).toEqual([]);
    expect(await ids('', 'bob')).toEqual([]);
  });

  it('are removed with their calls, also while one runs, and may begin again', async () => {
    const { ask, send, json, ids, calls, sessions } = serving([
      ...answers(1),
      () => NEVER,
      ...answers(1),
    ]);
    await ask('a', 'Tea');
    void ask('a', 'And?');
    expect((await send('DELETE', '/a', undefined, 'bob')).status).toBe(204);
    expect(await ids()).toEqual(['a']);
    expect((await send('DELETE', '/a')).status).toBe(204);
    expect(await ids()).toEqual([]);
    expect(await json('GET', '/a')).toMatchObject({ messages: [] });
    const left = await firstValueFrom(calls.driver.list$().pipe(toArray()));
    expect(left.flat()).toEqual([]);
    expect(await firstValueFrom(sessions.find$())).toEqual([]);
    await ask('a', 'New?');
    const { messages } = await json('GET', '/a');
    expect(messages).toHaveLength(2);
  });

  it('notify other clients of their changes', async () => {
    const { ask, send, json } = serving(answers(2));
    const reader = (await send('GET', '/a/changes')).body?.getReader();
    let seen = '';
    const until = async (words: string) => {
      while (!seen.includes(words)) {
        const { value, done } = (await reader?.read()) ?? { done: true };
        if (done) throw new Error(`It ended with ${seen}.`);
        seen += new TextDecoder().decode(value);
      }
    };
    await until('"head":null');
    await ask('a', 'Tea');
    await until('"running":"');
    await until('"title":"Tea"');
    await json('PATCH', '/a', { title: 'Mine' });
    await until('"title":"Mine"');
    await send('DELETE', '/a');
    await until('"deleted":true');
    expect((await reader?.read())?.done).toBe(true);
  });
});
