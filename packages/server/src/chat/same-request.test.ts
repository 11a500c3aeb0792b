import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { finish, type ScriptedAnswer, scriptedModel, text } from 'millrace/testing';
import {
  AsyncSubject,
  concatMap,
  filter,
  firstValueFrom,
  interval,
  map,
  NEVER,
  take,
  throwError,
  timer,
} from 'rxjs';
import { agUi } from '../ag-ui/index.js';
import { chatServer, type ChatServer, type ChatServerOptions } from './index.js';

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

const storing = () => ({
  store: { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() },
});

const answers = () => Array.from({ length: 9 }, (_, at) => [text(`Answer ${at + 1}.`)]);

const serving = (
  options: ChatServerOptions = {},
  script: readonly ScriptedAnswer[] = answers(),
) => {
  const model = scriptedModel(...script);
  const agent = createAgent({ name: 'helper', model });
  const server = chatServer(agent, { protocols: [agUi()], ...options });
  servers.push(server);
  /** Resolves once the answer begins. */
  const send = (path: string, body: object) =>
    server.respond(
      new Request(`http://localhost/api${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
  const readOf = async (response: Response) => {
    const read = await response.text();
    const said = [...read.matchAll(/Answer \d/gu)].map(String);
    return { status: response.status, read, answer: said.at(-1) };
  };
  const post = async (path: string, body: object) => readOf(await send(path, body));
  const questions = async () => {
    const response = await server.respond(new Request('http://localhost/api/chat/c'));
    const { messages } = (await response.json()) as { messages: { role: string }[] };
    return messages.filter(({ role }) => role === 'user').length;
  };
  return { model, server, send, readOf, post, questions };
};

const parts = (words: string) => [{ type: 'text', text: words }];
const says = (id: string, words: string, more: object = {}) => ({
  id: 'c',
  trigger: 'submit-message',
  messages: [{ id, role: 'user', parts: parts(words) }],
  ...more,
});
const again = (id: string, words: string) =>
  says(id, words, { trigger: 'regenerate-message', messageId: id });
const runs = (runId: string, words: string) => ({
  ...{ threadId: 'c', runId, tools: [], context: [], state: {}, forwardedProps: {} },
  messages: [{ id: `m-${runId}`, role: 'user', content: words }],
});

const protocols = [
  ['AI SDK', '/chat', says],
  ['AG-UI', '/ag-ui', runs],
] as const;

describe.each(protocols)('I22: the same request of %s', (_, path, bodyOf) => {
  it('is one call: twice at the same time, and once more after its end', async () => {
    const { model, post, questions } = serving();
    const both = await Promise.all([1, 2].map(() => post(path, bodyOf('q1', 'Pay 5.'))));
    const later = await post(path, bodyOf('q1', 'Pay 5.'));
    expect([...both, later].map(({ status, answer }) => [status, answer])).toEqual(
      Array(3).fill([200, 'Answer 1']),
    );
    expect(new Set([...both, later].map(({ read }) => read)).size).toBe(1);
    expect([model.requests.length, await questions()]).toEqual([1, 1]);
  });

  it('is one call for two processes at the same time', async () => {
    const options = storing();
    const slow: ScriptedAnswer = () =>
      timer(100).pipe(concatMap(() => [text('Answer 1.'), finish()]));
    const [one, other] = [serving(options, [slow]), serving(options, [slow])];
    const both = await Promise.all(
      [one, other].map(({ post }) => post(path, bodyOf('q1', 'Pay 5.'))),
    );
    expect(both.map(({ status, answer }) => [status, answer])).toEqual(
      Array(2).fill([200, 'Answer 1']),
    );
    expect(one.model.requests.length + other.model.requests.length).toBe(1);
    // Whichever refused it has stored nothing of it.
    await Promise.all([one, other].map(({ server }) => server.close()));
    const next = serving(options, []);
    expect((await next.post(path, bodyOf('q1', 'Pay 5.'))).answer).toBe('Answer 1');
    expect(await next.questions()).toBe(1);
  });

  it('is one call for the next process', async () => {
    const options = storing();
    const before = serving(options);
    await before.post(path, bodyOf('q1', 'Pay 5.'));
    await before.server.close();
    const { model, post, questions } = serving(options);
    expect((await post(path, bodyOf('q1', 'Pay 5.'))).answer).toBe('Answer 1');
    expect([model.requests.length, await questions()]).toEqual([0, 1]);
  });

  it('with other content is another call', async () => {
    const { model, post, questions } = serving();
    await post(path, bodyOf('q1', 'Pay 5.'));
    expect((await post(path, bodyOf('q1', 'Pay 6.'))).answer).toBe('Answer 2');
    expect((await post(path, bodyOf('q1', 'Pay 5.'))).answer).toBe('Answer 1');
    expect([model.requests.length, await questions()]).toEqual([2, path === '/chat' ? 2 : 1]);
  });

  it('under other ids is another call', async () => {
    const { model, post } = serving();
    await Promise.all(['q1', 'q2'].map((id) => post(path, bodyOf(id, 'Pay 5.'))));
    expect(model.requests).toHaveLength(2);
  });

  it('is asked again if its call has failed', async () => {
    const failing: ScriptedAnswer = () =>
      throwError(() => new MillraceError('server', 'No model today.'));
    const { model, post } = serving({}, [failing, [text('Answer 2.')]]);
    expect((await post(path, bodyOf('q1', 'Pay 5.'))).answer).toBeUndefined();
    expect((await post(path, bodyOf('q1', 'Pay 5.'))).answer).toBe('Answer 2');
    expect((await post(path, bodyOf('q1', 'Pay 5.'))).answer).toBe('Answer 2');
    expect(model.requests).toHaveLength(2);
  });

  it('whose record was removed is refused: the client loads the answer', async () => {
    const options = storing();
    const { model, post, questions } = serving(options);
    await post(path, bodyOf('q1', 'Pay 5.'));
    const calls = await firstValueFrom(options.store.calls.driver.list$());
    for (const { callId } of [calls].flat()) {
      await firstValueFrom(options.store.calls.driver.remove$(callId), { defaultValue: undefined });
    }
    expect((await post(path, bodyOf('q1', 'Pay 5.'))).status).toBe(409);
    expect([model.requests.length, await questions()]).toEqual([1, 1]);
  });
});

describe('I22: an answer that is generated again', () => {
  it('is one call at a time, and another one afterwards', async () => {
    const go$ = new AsyncSubject<void>();
    const { model, send, readOf, post } = serving({}, [
      [text('Answer 1.')],
      () => go$.pipe(concatMap(() => [text('Answer 2.'), finish()])),
      [text('Answer 3.')],
    ]);
    await post('/chat', says('q1', 'A poem.'));
    const responses = await Promise.all([1, 2].map(() => send('/chat', again('q1', 'A poem.'))));
    go$.next();
    go$.complete();
    const both = await Promise.all(responses.map(readOf));
    expect(both.map(({ answer }) => answer)).toEqual(['Answer 2', 'Answer 2']);
    expect((await post('/chat', again('q1', 'A poem.'))).answer).toBe('Answer 3');
    expect(model.requests).toHaveLength(3);
  });

  it('may have another question under the same id: it was edited', async () => {
    const { post } = serving();
    await post('/chat', says('q1', 'A poem.'));
    const edits = ['A song.', 'A rhyme.'];
    for (const words of edits) {
      expect((await post('/chat', says('q1', words, { messageId: 'q1' }))).status).toBe(200);
    }
  });
});

describe('I22: a request without an id of its question', () => {
  it('is a call each time', async () => {
    const { model, post } = serving();
    const messages = [{ role: 'user', parts: parts('Pay 5.') }];
    for (const _ of [1, 2]) await post('/chat', { id: 'c', messages });
    expect(model.requests).toHaveLength(2);
  });
});

describe('I22: a request whose first client has left', () => {
  it('follows the call that still runs', async () => {
    const { model, server, post } = serving({}, [
      () =>
        interval(20).pipe(
          take(3),
          map((at) => text(`Answer ${at}.`)),
        ),
      () => NEVER,
    ]);
    const first = await server.respond(
      new Request('http://localhost/api/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(says('q1', 'Count.')),
      }),
    );
    await first.body?.cancel();
    await firstValueFrom(interval(1).pipe(filter(() => model.requests.length === 1)));
    expect((await post('/chat', says('q1', 'Count.'))).answer).toBe('Answer 2');
    expect(model.requests).toHaveLength(1);
  });
});
