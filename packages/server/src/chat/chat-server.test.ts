import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type ModelChunk, suspend, textOf, tool } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { DefaultChatTransport, type UIMessage, type UIMessageChunk } from 'ai';
import {
  concat,
  concatMap,
  defer,
  filter,
  firstValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  ReplaySubject,
  Subject,
  take,
  throwError,
  toArray,
} from 'rxjs';
import { userLimits } from '../limits/index.js';
import { answerIn, linesOf, readStream } from '../read-as-client.test-support.js';
import {
  type AccessEntry,
  type ChatProtocol,
  chatServer,
  type ChatServer,
  type ChatServerOptions,
  toResponse,
} from './index.js';

const base = 'http://localhost/api';

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

type Trigger = 'submit-message' | 'regenerate-message';

/** A client of the AI SDK, over a server in this process. */
const clientOf = (server: ChatServer, chatId = 'a') => {
  servers.push(server);
  const { respond } = server;
  const fetch = (input: string | URL | Request, init?: RequestInit) =>
    respond(new Request(String(input), init));
  const transport = new DefaultChatTransport({ api: `${base}/chat`, fetch });
  const messages: UIMessage[] = [];
  const stream = (trigger: Trigger, messageId?: string) =>
    transport.sendMessages({ trigger, chatId, messageId, messages, abortSignal: undefined });
  const send = async (trigger: Trigger, messageId?: string): Promise<UIMessage> => {
    const { message, errors } = await readStream(await stream(trigger, messageId));
    messages.push(message);
    return errors.length === 0 ? message : Promise.reject(new Error(errors.join()));
  };
  const say = (question: string, id = `q${messages.length}`): void => {
    messages.push({ id, role: 'user', parts: [{ type: 'text', text: question }] });
  };
  return {
    messages,
    fetch,
    say,
    send,
    begin: (question: string) => {
      say(question);
      return stream('submit-message');
    },
    ask: (question: string) => {
      say(question);
      return send('submit-message');
    },
    edit: (at: number, question: string) => {
      const id = messages[at]?.id ?? '';
      messages.splice(at);
      say(question, id);
      return send('submit-message', id);
    },
    regenerate: (at: number) => {
      const id = messages[at]?.id;
      messages.splice(at);
      return send('regenerate-message', id);
    },
    /** Joins the running call, as after a reload. */
    join: () => transport.reconnectToStream({ chatId }),
    post: (path: string, body: unknown = {}, headers: Readonly<Record<string, string>> = {}) =>
      fetch(`${base}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    history: async (): Promise<{ messages: UIMessage[]; running?: string }> => {
      const body: unknown = await (await fetch(`${base}/chat/${chatId}`)).json();
      return body as never;
    },
  };
};

const chatOver = (answers: readonly ScriptedAnswer[], options: ChatServerOptions = {}) => {
  const model = scriptedModel(...answers);
  const server = chatServer(createAgent({ name: 'helper', model }), options);
  return { model, server, ...clientOf(server) };
};

const linesIn = ({ messages }: { readonly messages: readonly UIMessage[] }): readonly string[] =>
  messages.map((message) => `${message.role}: ${answerIn(message)}`);

/** A model that answers piece by piece, and never ends by itself. */
const held = () => {
  const piece$ = new ReplaySubject<ModelChunk>(Infinity);
  const say = (delta: string): void => {
    piece$.next({ type: 'text', text: delta });
  };
  const end = (): void => {
    piece$.next({ type: 'finish', finish: 'stop' });
    piece$.complete();
  };
  return { say, end, answer: () => piece$ };
};

/** Reads until the text of an answer contains this. */
const readUntil = async (stream: ReadableStream<UIMessageChunk>, wanted: string) => {
  const reader = stream.getReader();
  let seen = '';
  while (!seen.includes(wanted)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The stream ended after '${seen}'.`);
    if (value.type === 'text-delta') seen += value.delta;
  }
  return reader;
};

describe('a chat server', () => {
  it('answers a chat of the AI SDK, and keeps the conversation', async () => {
    const chat = chatOver([[text('Hello Ann.')], [text('You are Ann.')]]);
    expect(answerIn(await chat.ask('I am Ann.'))).toBe('Hello Ann.');
    expect(answerIn(await chat.ask('Who am I?'))).toBe('You are Ann.');
    expect(chat.model.requests[1]?.messages).toHaveLength(3);
    const { messages, running } = await chat.history();
    expect(linesIn({ messages })).toEqual([
      'user: I am Ann.',
      'assistant: Hello Ann.',
      'user: Who am I?',
      'assistant: You are Ann.',
    ]);
    expect(running).toBeUndefined();
    // A client that reloads has the same messages under the same ids.
    expect(messages.map(({ id }) => id).filter((_, at) => at % 2 === 1)).toEqual(
      chat.messages.map(({ id }) => id).filter((_, at) => at % 2 === 1),
    );
  });

  it('lets a client reload in the middle of an answer', async () => {
    const { answer, say, end } = held();
    const chat = chatOver([answer]);
    expect(await chat.join()).toBeNull();
    say('Once ');
    const reader = await readUntil(await chat.begin('A story?'), 'Once ');
    await reader.cancel();
    const { messages, running } = await chat.history();
    expect(linesIn({ messages })).toEqual(['user: A story?']);
    const joined = await chat.join();
    say('upon a time.');
    end();
    const { message } = await readStream(joined ?? new ReadableStream());
    expect([answerIn(message), message.id]).toEqual(['Once upon a time.', running]);
    expect(linesIn(await chat.history())).toEqual([
      'user: A story?',
      'assistant: Once upon a time.',
    ]);
    expect(await chat.join()).toBeNull();
  });

  it('shows one call to several clients', async () => {
    const { answer, say, end } = held();
    const chat = chatOver([answer]);
    say('One');
    const first = await chat.begin('?');
    const others = await Promise.all([chat.join(), chat.join()]);
    say(' answer.');
    end();
    const read = await Promise.all(
      [first, ...others].map((stream) => readStream(stream ?? new ReadableStream())),
    );
    expect(read.map(({ message }) => answerIn(message))).toEqual(Array(3).fill('One answer.'));
    expect(new Set(read.map(({ message }) => message.id)).size).toBe(1);
    expect(chat.model.requests).toHaveLength(1);
  });

  it('sends a client that lost its connection only the missing events, even after the end', async () => {
    const chat = chatOver([[text('One '), text('two '), text('three.')]]);
    chat.say('Count.');
    const asked = await chat.post('/chat', { id: 'a', messages: chat.messages });
    const whole = await asked.text();
    const events = whole.split(/(?<=\n\n)/u);
    const ids = events.map((event) => /^id: (.+)$/mu.exec(event)?.[1] ?? '');
    expect(new Set(ids).size).toBe(events.length);
    for (const [at, id] of ids.entries()) {
      const rest = await chat.fetch(`${base}/chat/a/stream`, { headers: { 'last-event-id': id } });
      expect(await rest.text()).toBe(events.slice(at + 1).join(''));
    }
    const others = await chat.fetch(`${base}/chat/b/stream`, {
      headers: { 'last-event-id': ids[0] ?? '' },
    });
    expect(others.status).toBe(404);
    const unknown = await chat.fetch(`${base}/chat/a/stream`, {
      headers: { 'last-event-id': 'unknown:0:1.0' },
    });
    expect(unknown.status).toBe(404);
  });

  it('runs the calls of a conversation one after another', async () => {
    const { answer, say, end } = held();
    const chat = chatOver([answer, [text('Second.')]]);
    const first = await chat.begin('1?');
    const second = await chat.begin('2?');
    say('First.');
    end();
    const [one, two] = await Promise.all([readStream(first), readStream(second)]);
    expect([answerIn(one.message), answerIn(two.message)]).toEqual(['First.', 'Second.']);
    expect(linesIn(await chat.history())).toEqual([
      'user: 1?',
      'assistant: First.',
      'user: 2?',
      'assistant: Second.',
    ]);
  });

  it('ends an answer that is stopped, and keeps what was said', async () => {
    const { answer, say } = held();
    const chat = chatOver([answer, [text('Yes.')]]);
    say('Half');
    const stream = await chat.begin('?');
    const reader = await readUntil(stream, 'Half');
    expect(await (await chat.post('/chat/a/stop')).json()).toEqual({ stopped: 1 });
    while (!(await reader.read()).done);
    expect((await chat.history()).running).toBeUndefined();
    expect(await (await chat.post('/chat/a/stop')).json()).toEqual({ stopped: 0 });
    expect(answerIn(await chat.ask('Still there?'))).toBe('Yes.');
  });

  it('stops waiting calls as well, and each ends as its protocol requires', async () => {
    const { answer, say } = held();
    const chat = chatOver([answer]);
    say('Half');
    const streams = [await chat.begin('1?'), await chat.begin('2?'), await chat.begin('3?')];
    expect((await chat.history()).messages.map(({ role }) => role)).toEqual(Array(3).fill('user'));
    expect(await (await chat.post('/chat/a/stop')).json()).toEqual({ stopped: 3 });
    const read = await Promise.all(streams.map(readStream));
    expect(read.map(({ errors }) => errors)).toEqual([[], [], []]);
    expect((await chat.history()).running).toBeUndefined();
  });

  it('has the whole conversation at any moment', async () => {
    const chat = chatOver([[text('Yes.')]]);
    const stream = await chat.begin('?');
    const reader = stream.getReader();
    for (;;) {
      const { done } = await reader.read();
      const { messages, running } = await chat.history();
      expect(linesIn({ messages }).join()).toBe(
        running === undefined ? 'user: ?,assistant: Yes.' : 'user: ?',
      );
      if (done) break;
    }
  });

  it('adds a message to the running call', async () => {
    const started$ = new ReplaySubject<void>(1);
    const done$ = new Subject<string>();
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      run: () => {
        started$.next();
        return firstValueFrom(done$);
      },
    });
    const model = scriptedModel([toolCall('wait'), finish()], [text('In French: oui.')]);
    const chat = clientOf(chatServer(createAgent({ model, tools: [wait] })));
    const answered = chat.ask('Yes in a language?');
    await firstValueFrom(started$);
    const steered = chat.post('/chat/a/steer', { text: 'French, please.' });
    await new Promise((resolve) => setImmediate(resolve));
    done$.next('Done.');
    expect(await (await steered).json()).toEqual({ delivered: true });
    expect(answerIn(await answered)).toBe('In French: oui.');
    const { messages } = await chat.history();
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(messages[1]?.parts).toContainEqual(expect.objectContaining({ type: 'data-steered' }));
    expect(await (await chat.post('/chat/a/steer', { text: 'Late.' })).json()).toEqual({
      delivered: false,
    });
  });
});

describe('the message that a request replaces', () => {
  const conversation = async (...more: readonly ScriptedAnswer[]) => {
    const chat = chatOver([[text('A1.')], [text('A2.')], ...more]);
    await chat.ask('Q1?');
    await chat.ask('Q2?');
    return chat;
  };

  it('S12: is the last answer when it is regenerated', async () => {
    const chat = await conversation([text('A2, again.')]);
    expect(answerIn(await chat.regenerate(3))).toBe('A2, again.');
    expect(linesIn(await chat.history())).toEqual([
      'user: Q1?',
      'assistant: A1.',
      'user: Q2?',
      'assistant: A2, again.',
    ]);
    expect(chat.model.requests[2]?.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
    ]);
  });

  it('S12: is an earlier answer and everything after it', async () => {
    const chat = await conversation([text('A1, again.')]);
    expect(answerIn(await chat.regenerate(1))).toBe('A1, again.');
    expect(linesIn(await chat.history())).toEqual(['user: Q1?', 'assistant: A1, again.']);
  });

  it('S12: is an edited question and everything after it', async () => {
    const chat = await conversation([text('A3.')]);
    expect(answerIn(await chat.edit(2, 'Q3?'))).toBe('A3.');
    expect(linesIn(await chat.history())).toEqual([
      'user: Q1?',
      'assistant: A1.',
      'user: Q3?',
      'assistant: A3.',
    ]);
    await chat.edit(0, 'Q4?').catch(() => undefined);
    expect(linesIn(await chat.history())[0]).toBe('user: Q4?');
  });

  it('S12: is found by a client that sends its last message only', async () => {
    const chat = await conversation([text('A2, again.')], [text('A3.')]);
    const [, , question, answer] = chat.messages;
    const again = { id: 'a', trigger: 'regenerate-message', messages: [question] };
    await (await chat.post('/chat', { ...again, messageId: answer?.id })).text();
    expect(linesIn(await chat.history()).slice(1)).toEqual([
      'assistant: A1.',
      'user: Q2?',
      'assistant: A2, again.',
    ]);
    // After a reload, a client has the ids of the server.
    const { messages } = await chat.history();
    const edited = { id: 'a', messageId: messages[2]?.id, messages: [messages[2]] };
    await (await chat.post('/chat', edited)).text();
    expect(linesIn(await chat.history()).slice(1)).toEqual([
      'assistant: A1.',
      'user: Q2?',
      'assistant: A3.',
    ]);
    const unknown = { id: 'a', messageId: 'x', messages: [{ ...question, id: 'x' }] };
    expect((await chat.post('/chat', unknown)).status).toBe(409);
    expect(linesIn(await chat.history())).toHaveLength(4);
  });

  it('S12: is an answer that still runs', async () => {
    const { answer, say } = held();
    const chat = chatOver([answer, [text('Better.')]]);
    say('Worse');
    const reader = await readUntil(await chat.begin('?'), 'Worse');
    await reader.cancel();
    chat.messages.push({ id: 'partial', role: 'assistant', parts: [] });
    expect(answerIn(await chat.regenerate(1))).toBe('Better.');
    expect(linesIn(await chat.history())).toEqual(['user: ?', 'assistant: Better.']);
  });

  it('S12: is nothing while an answer runs, if the conversation has a different history', async () => {
    const { answer, say, end } = held();
    const chat = chatOver([answer]);
    say('Half');
    const stream = await chat.begin('?');
    const body = {
      id: 'a',
      trigger: 'regenerate-message',
      messages: [{ id: 'unknown', role: 'assistant', parts: [] }, ...chat.messages],
    };
    expect((await chat.post('/chat', body)).status).toBe(409);
    say(' and half.');
    end();
    expect(answerIn((await readStream(stream)).message)).toBe('Half and half.');
  });

  it.each(['refuse', 'take'] as const)(
    'S12: is a 409, or taken over, for ids of any characters: %s',
    async (unknownHistory) => {
      const chat = chatOver([[text('One.')], [text('Two.')]], { unknownHistory });
      await chat.ask('?');
      for (const id of ['\ud800', '%', '../x', '__proto__', 'x'.repeat(512)]) {
        const parts = [{ type: 'text', text: 'Other.' }];
        const before = { id, role: 'assistant', parts };
        const body = { id: 'a', messages: [before, { id: `q-${id.length}`, role: 'user', parts }] };
        const { status } = await chat.post('/chat', body);
        expect(status).toBe(unknownHistory === 'take' ? 200 : 409);
      }
    },
  );

  it('S12: asks all questions that never arrived together with the next one', async () => {
    const chat = chatOver([[text('One.')]]);
    for (let at = 0; at < 5_000; at += 1) chat.say(`${at}?`, `lost-${at}`);
    expect(answerIn(await chat.ask('Last?'))).toBe('One.');
    expect(chat.model.requests[0]?.messages).toHaveLength(5_001);
  });

  it('S12: is nothing if the conversation has a different history', async () => {
    const chat = await conversation();
    chat.messages.splice(1, 1, { id: 'unknown', role: 'assistant', parts: [] });
    await expect(chat.edit(2, 'Q3?')).rejects.toThrow('The conversation has changed.');
    expect(linesIn(await chat.history())).toHaveLength(4);
  });
});

describe('when the last client leaves', () => {
  it('may leave before it has read anything', async () => {
    const chat = chatOver([() => NEVER, [text('Next.')]], { onDisconnect: 'interrupt' });
    chat.say('?');
    const { body } = await chat.post('/chat', { id: 'a', messages: chat.messages });
    await body?.cancel();
    expect(answerIn(await chat.ask('And?'))).toBe('Next.');
  });

  const left = async (options: ChatServerOptions) => {
    const { answer, say, end } = held();
    const chat = chatOver([answer, [text('Next.')]], options);
    say('Half');
    const reader = await readUntil(await chat.begin('?'), 'Half');
    await reader.cancel();
    return { ...chat, say, end };
  };

  it('a call continues by default', async () => {
    const { join, history, say, end } = await left({});
    const joined = await join();
    say(' and half.');
    end();
    await readStream(joined ?? new ReadableStream());
    expect(linesIn(await history())).toEqual(['user: ?', 'assistant: Half and half.']);
  });

  it("'interrupt' interrupts the call: the text so far stays", async () => {
    const { ask, history, join } = await left({ onDisconnect: 'interrupt' });
    expect(await join()).toBeNull();
    await ask('And?');
    expect(linesIn(await history()).slice(-2)).toEqual(['user: And?', 'assistant: Next.']);
  });

  it("'abort' aborts the call: it leaves no trace and is not resumed", async () => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const { ask, history, join } = await left({ onDisconnect: 'abort', store });
    expect(await join()).toBeNull();
    await ask('And?');
    // The client still shows its question.
    expect(linesIn(await history())).toEqual(['user: ?', 'user: And?', 'assistant: Next.']);
    const after = chatOver([], { store });
    expect(linesIn(await after.history())).toEqual(['user: ?', 'user: And?', 'assistant: Next.']);
  });
});

describe('a server that opens the store of another one', () => {
  it('resumes the unfinished call, and clients end up with one message', async () => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const before = chatOver(
      [() => concat(of<ModelChunk>({ type: 'text', text: 'Broken' }), NEVER)],
      { store },
    );
    const reader = await readUntil(await before.begin('?'), 'Broken');
    await before.server.close({ timeoutMs: 0 });
    while (!(await reader.read()).done);

    const { answer, say, end } = held();
    const after = chatOver([answer], { store });
    const { messages, running } = await after.history();
    expect([linesIn({ messages }), running]).toEqual([['user: ?'], expect.any(String)]);
    // The text of the broken attempt is nowhere, whichever event the client saw last.
    const joined = await after.join();
    say('Whole.');
    end();
    const { message } = await readStream(joined ?? new ReadableStream());
    expect([linesOf(message).filter((it) => it !== 'step-start'), message.id]).toEqual([
      ['text: Whole.'],
      running,
    ]);
    expect(linesIn(await after.history())).toEqual(['user: ?', 'assistant: Whole.']);
    const whole = await (
      await after.fetch(`${base}/chat/a/stream`, { headers: { 'last-event-id': `${running}:1:0` } })
    ).text();
    const from = async (id: string): Promise<string> =>
      (await after.fetch(`${base}/chat/a/stream`, { headers: { 'last-event-id': id } })).text();
    expect(whole).not.toContain('Broken');
    for (const [id, rest] of [...whole.matchAll(/(?<=^id: ).*$/gmu)].map(
      ({ 0: found, index }) => [found, whole.slice(whole.indexOf('\n\n', index) + 2)] as const,
    )) {
      expect(await from(id)).toBe(rest);
    }
    // A client that had seen the broken attempt learns that it is void.
    expect(await from(`${running}:0:1.0`)).toContain('data-discarded');
    await after.server.close();
  });
});

describe('two servers', () => {
  it('over one agent have conversations of their own', async () => {
    const agent = createAgent({ model: scriptedModel([text('Secret.')]) });
    const first = clientOf(chatServer(agent));
    const second = clientOf(chatServer(agent));
    await first.ask('?');
    expect((await second.history()).messages).toEqual([]);
  });

  it('over one store: the second one continues a call once the first one has left it', async () => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const first = chatOver([() => NEVER], { store });
    const stream = await first.begin('?');
    const errors: string[] = [];
    const second = chatOver([[text('Whole.')]], {
      store,
      onError: ({ code }) => errors.push(code),
    });
    await second.history();
    await first.server.close({ timeoutMs: 0 });
    await readStream(stream);
    while (linesIn(await second.history()).length < 2) {
      await readStream((await second.join()) ?? new Response('').body ?? stream).catch(() => 0);
    }
    expect(linesIn(await second.history())).toEqual(['user: ?', 'assistant: Whole.']);
    expect(second.model.requests).toHaveLength(1);
  });
});

describe('concurrent requests', () => {
  it('S12: to regenerate an answer result in one answer', async () => {
    const chat = chatOver([[text('A1.')], [text('A2.')], [text('A3.')]]);
    const { id } = await chat.ask('?');
    const body = {
      id: 'a',
      trigger: 'regenerate-message',
      messageId: id,
      messages: chat.messages.slice(0, 1),
    };
    const texts = await Promise.all(
      [1, 2].map(async () => (await chat.post('/chat', body)).text()),
    );
    expect(texts.map((it) => it.includes('"finish"'))).toEqual([true, true]);
    expect(linesIn(await chat.history())).toEqual(['user: ?', 'assistant: A2.']);
  });

  it('S12: are not lost if one of them retracts something', async () => {
    const chat = chatOver([[text('A1.')], [text('A2.')], [text('A3.')]]);
    const { id } = await chat.ask('Q1?');
    const [question] = chat.messages;
    const again = { id: 'a', trigger: 'regenerate-message', messageId: id, messages: [question] };
    const next = {
      id: 'a',
      messages: [{ role: 'user', parts: [{ type: 'text', text: 'Q2?' }] }],
    };
    const answers = await Promise.all([chat.post('/chat', again), chat.post('/chat', next)]);
    await Promise.all(answers.map((answer) => answer.text()));
    expect(linesIn(await chat.history())).toEqual([
      'user: Q1?',
      'assistant: A2.',
      'user: Q2?',
      'assistant: A3.',
    ]);
  });

  it('never exceed the limit of calls', async () => {
    const chat = chatOver(
      Array.from({ length: 2 }, () => () => NEVER),
      { maxCalls: 2 },
    );
    const asking = Array.from({ length: 10 }, (_, at) =>
      chat.post('/chat', {
        id: `c${at}`,
        messages: [{ role: 'user', parts: [{ type: 'text', text: '?' }] }],
      }),
    );
    const statuses = (await Promise.all(asking)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(2);
    expect(statuses.filter((status) => status === 503)).toHaveLength(8);
  });

  it('and a stop find the call, even if its session is not loaded yet', async () => {
    const sessions = inProcessSessions();
    const loading$ = new ReplaySubject<void>(1);
    const loaded$ = new ReplaySubject<undefined>(1);
    const load$ = (): Observable<undefined> =>
      defer(() => {
        loading$.next();
        return loaded$.pipe(take(1));
      });
    const store = { calls: createCallStore(inProcessCalls()), sessions: { ...sessions, load$ } };
    const chat = chatOver([() => NEVER], { store });
    const asked = chat.begin('?');
    await firstValueFrom(loading$);
    const stopped = chat.post('/chat/a/stop');
    loaded$.next(undefined);
    const { errors } = await readStream(await asked);
    expect(errors).toEqual([]);
    expect(await (await stopped).json()).toEqual({ stopped: 1 });
  });
});

describe('a server that is closed', () => {
  it('refuses requests instead of letting them wait', async () => {
    const chat = chatOver([[text('Yes.')]]);
    await chat.ask('?');
    await chat.server.close();
    const ask = { id: 'b', messages: [{ role: 'user', parts: [{ type: 'text', text: '?' }] }] };
    expect((await chat.post('/chat', ask)).status).toBe(503);
    expect((await chat.fetch(`${base}/chat/a`)).status).toBe(503);
    await chat.server.close();
  });

  it('refuses new calls while it closes', async () => {
    const chat = chatOver([() => NEVER]);
    const stream = await chat.begin('?');
    const closed = chat.server.close({ timeoutMs: 0 });
    const ask = { id: 'b', messages: [{ role: 'user', parts: [{ type: 'text', text: '?' }] }] };
    expect((await chat.post('/chat', ask)).status).toBe(503);
    await Promise.all([closed, readStream(stream)]);
  });

  it('refuses a call that it aborts before the start', async () => {
    const store = {
      calls: createCallStore(inProcessCalls()),
      sessions: { ...inProcessSessions(), load$: () => NEVER },
    };
    const chat = chatOver([[text('Yes.')]], { store });
    const ask = { id: 'a', messages: [{ role: 'user', parts: [{ type: 'text', text: '?' }] }] };
    const asked = chat.post('/chat', ask);
    await chat.server.close({ timeoutMs: 0 });
    expect((await asked).status).toBe(503);
  });
});

describe('tools of a client', () => {
  it('get their results from it, and the answer continues its message', async () => {
    const where = tool({
      name: 'where',
      description: 'Asks where the user is.',
      run: () => suspend({ accuracy: 1 }),
    });
    const model = scriptedModel([toolCall('where', {}, 'w'), finish()], [text('In Oslo.')]);
    const callIds: (string | undefined)[] = [];
    const onAccess: ChatServerOptions['onAccess'] = ({ callId }) => callIds.push(callId);
    const server = chatServer(createAgent({ model, tools: [where] }), { onAccess });
    const chat = clientOf(server);
    const asked = await chat.ask('Where am I?');
    expect((await chat.history()).messages.at(-1)?.parts.map(({ type }) => type)).toEqual([
      'step-start',
      'tool-where',
      'data-suspended',
    ]);
    for (const part of asked.parts) {
      if (part.type !== 'tool-where') continue;
      Object.assign(part, { state: 'output-available', output: { city: 'Oslo' } });
    }
    const answered = await chat.send('submit-message', asked.id);
    expect([answered.id, answerIn(answered)]).toEqual([asked.id, 'In Oslo.']);
    // A client that lost its connection continues the same message.
    const { messages, callId } = { ...(await chat.history()), callId: callIds.at(-1) };
    const rest = await chat.fetch(`${base}/chat/a/stream`, {
      headers: { 'last-event-id': `${callId}:0:0` },
    });
    expect(await rest.text()).not.toContain('"type":"start"');
    expect(messages.map(({ id }) => id)).toEqual([expect.any(String), asked.id]);
    expect(linesOf(messages[1] ?? asked)).toEqual([
      'step-start',
      'where {} output-available: {"city":"Oslo"}',
      // A client shows the question with its answer.
      expect.stringContaining('"request":{"accuracy":1}'),
      'step-start',
      'text: In Oslo.',
    ]);
  });

  it('take none once a question has cancelled them, while its call runs and after it', async () => {
    const where = tool({ name: 'where', description: 'Asks.', run: () => suspend() });
    const { answer, say, end } = held();
    const model = scriptedModel([toolCall('where', {}, 'w'), finish()], answer);
    const chat = clientOf(chatServer(createAgent({ model, tools: [where] })));
    const asked = await chat.ask('Where am I?');
    const stream = await chat.begin('Never mind.');
    say('Fine.');
    const isCancelled = async () => {
      const { messages } = await chat.history();
      expect(linesOf(messages[1] ?? asked)).toEqual([
        'step-start',
        'where {} output-error: "The tool call was cancelled."',
        expect.stringContaining('data-suspended: '),
      ]);
    };
    await isCancelled();
    const parts = asked.parts.map((part) =>
      part.type === 'tool-where' ? { ...part, state: 'output-available', output: 'Oslo' } : part,
    );
    const bring = () => chat.post('/chat', { id: 'a', messages: [{ ...asked, parts }] });
    const isRefused = async () => {
      const refused = await bring();
      expect([refused.status, await refused.text()]).toEqual([
        409,
        expect.stringContaining('This is no longer waiting for an answer.'),
      ]);
    };
    await isRefused();
    end();
    const { message } = await readStream(stream);
    expect(linesOf(message)).toEqual(['step-start', 'text: Fine.']);
    await isCancelled();
    await isRefused();
    const { messages } = await chat.history();
    expect(messages).toHaveLength(4);
    expect(model.requests).toHaveLength(2);
  });
});

describe('files of a client', () => {
  it('reach the model, and come back in the history', async () => {
    const chat = chatOver([[text('A dot.')]]);
    const url = 'data:image/png;base64,iVBORw0KGgo=';
    chat.messages.push({
      id: 'q',
      role: 'user',
      parts: [
        { type: 'file', mediaType: 'image/png', url },
        { type: 'text', text: 'What is it?' },
      ],
    });
    expect(answerIn(await chat.send('submit-message'))).toBe('A dot.');
    expect(chat.model.requests[0]?.messages[0]?.content).toEqual([
      { type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: 'iVBORw0KGgo=' } },
      { type: 'text', text: 'What is it?' },
    ]);
    expect((await chat.history()).messages[0]?.parts[0]).toMatchObject({ type: 'file', url });
  });
});

describe('a request', () => {
  const users: ChatServerOptions = {
    user: ({ headers }) => headers.get('authorization') ?? undefined,
  };
  const ask = { id: 'a', messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }] };

  it('of another user does not see the conversation', async () => {
    const chat = chatOver([[text('Secret.')], [text('Hello.')]], users);
    await (await chat.post('/chat', ask, { authorization: 'ann' })).text();
    const seenBy = async (authorization: string): Promise<string> =>
      (await chat.fetch(`${base}/chat/a`, { headers: { authorization } })).text();
    expect(await seenBy('ann')).toContain('Secret.');
    expect(await seenBy('bob')).not.toContain('Secret.');
    expect(await seenBy('ann/a')).not.toContain('Secret.');
    expect((await chat.fetch(`${base}/chat/a`)).status).toBe(401);
  });

  it.each([
    ['an unknown path', 404, '/nothing', { method: 'GET' }],
    ['another method', 405, '/chat', { method: 'PUT' }],
    [
      'a form',
      415,
      '/chat',
      { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{}' },
    ],
    ['no JSON', 400, '/chat', { body: '{' }],
    ['no UTF-8', 400, '/chat', { body: new Uint8Array([0x7b, 0xff, 0x7d]) }],
    ['an id that is a path', 400, '/chat', { body: JSON.stringify({ ...ask, id: '../b' }) }],
    ['a prototype', 400, '/chat', { body: '{"__proto__":{"id":"a"}}' }],
    ['a large body', 413, '/chat', { body: JSON.stringify({ ...ask, more: 'x'.repeat(2_000) }) }],
    ['a page of another site', 403, '/chat', { headers: { origin: 'http://evil.example' } }],
    ['approvals without a queue', 404, '/approvals', { body: '{}' }],
  ] as const)('with %s is refused', async (_, status, path, init) => {
    const { fetch } = chatOver([], { maxBytes: 1_000 });
    const headers = {
      'content-type': 'application/json',
      ...('headers' in init ? init.headers : {}),
    };
    const method = 'method' in init ? init.method : 'POST';
    const body = method === 'GET' ? null : 'body' in init ? init.body : JSON.stringify(ask);
    const response = await fetch(`${base}${path}`, { method, headers, body });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ error: expect.any(String), code: expect.any(String) });
  });

  it('for a name that points to this machine is refused, unless it is named or users are known', async () => {
    const asked = () =>
      new Request('http://evil.example/api/chat/a', { headers: { authorization: 'ann' } });
    expect((await chatOver([]).server.respond(asked())).status).toBe(421);
    expect((await chatOver([], { hosts: ['evil.example'] }).server.respond(asked())).status).toBe(
      200,
    );
    expect((await chatOver([], users).server.respond(asked())).status).toBe(200);
  });

  it('of a page of an allowed site gets what its browser needs', async () => {
    const origin = 'https://app.example';
    const { fetch } = chatOver([], { origins: [origin] });
    const asked = await fetch(`${base}/chat`, { method: 'OPTIONS', headers: { origin } });
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, origin]);
    const read = await fetch(`${base}/chat/a`, { headers: { origin } });
    expect(read.headers.get('access-control-allow-origin')).toBe(origin);
  });

  it('to read a conversation that does not exist leaves nothing', async () => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const chat = chatOver([], { store });
    expect(await chat.history()).toEqual({ id: 'a', messages: [], head: null, branches: {} });
    expect(await chat.join()).toBeNull();
    await chat.post('/chat/a/stop');
    await chat.server.close();
    expect(await firstValueFrom(store.sessions.find$())).toEqual([]);
  });

  it('beyond the limit of calls is refused, and later ones are not', async () => {
    const { answer, end } = held();
    const chat = chatOver([answer, [text('Now.')]], { maxCalls: 1 });
    const first = await chat.begin('?');
    expect((await chat.post('/chat', { ...ask, id: 'b' })).status).toBe(503);
    end();
    await readStream(first).catch(() => undefined);
    expect((await chat.post('/chat', { ...ask, id: 'b' })).status).toBe(200);
  });

  it('is logged with its call, when its response has ended', async () => {
    const log: unknown[] = [];
    const chat = chatOver([[text('Yes.')]], { onAccess: (entry) => log.push(entry) });
    const { id } = await chat.ask('?');
    await chat.fetch(`${base}/chat`);
    expect(log).toEqual([
      { method: 'POST', path: '/api/chat', status: 200, ms: expect.any(Number), callId: id },
      { method: 'GET', path: '/api/chat', status: 200, ms: expect.any(Number) },
    ]);
  });

  it('of a framework is answered without a server', async () => {
    const agent = createAgent({ model: scriptedModel([text('One.')]) });
    const request = (path: string, init?: RequestInit) =>
      toResponse(new Request(`${base}${path}`, init), agent);
    const headers = { 'content-type': 'application/json' };
    await (await request('/chat', { method: 'POST', headers, body: JSON.stringify(ask) })).text();
    expect(await (await request('/chat/a')).text()).toContain('One.');
  });
});

describe('a failure', () => {
  it('of the model is reported to the application once, and masked for all clients', async () => {
    const errors: unknown[] = [];
    const failing = () => throwError(() => new Error('password=hunter2'));
    const chat = chatOver([failing], {
      onError: (error, callId) => errors.push([error.code, callId]),
    });
    const body = await (
      await chat.post('/chat', {
        id: 'a',
        messages: [{ role: 'user', parts: [{ type: 'text', text: '?' }] }],
      })
    ).text();
    expect(body).not.toContain('hunter2');
    expect(body).toContain('"type":"error"');
    expect(errors).toEqual([['unknown', expect.any(String)]]);
  });

  it('of the store is a readable error', async () => {
    const errors: string[] = [];
    const sessions = {
      ...inProcessSessions(),
      load$: () => throwError(() => new Error('disk: /secret')),
    };
    const store = { calls: createCallStore(inProcessCalls()), sessions };
    const chat = chatOver([], { store, onError: ({ code }) => errors.push(code) });
    const response = await chat.post('/chat', {
      id: 'a',
      messages: [{ role: 'user', parts: [{ type: 'text', text: '?' }] }],
    });
    expect([response.status, await response.text()]).toEqual([
      500,
      expect.not.stringContaining('secret'),
    ]);
    expect(errors).toEqual(['store']);
  });
});

describe('a custom protocol', () => {
  const plain: ChatProtocol = ({ agent }) => [
    {
      method: 'GET',
      path: '/ask.txt/:chat',
      answer$: ({ request, chat, ids, user }) => {
        const { start$, follow$ } = chat(ids['chat'] ?? '');
        return start$({ input: new URL(request.url).searchParams.get('q') ?? '' }).pipe(
          concatMap((callId) => follow$(callId)),
          filter((event) => event.type === 'postCall'),
          map(({ reply, callId }) =>
            Response.json([agent.name, user, callId, textOf(reply)], { status: 201 }),
          ),
        );
      },
    },
    {
      method: 'GET',
      path: '/runs',
      answer$: ({ chat }) =>
        chat('a').runs$.pipe(map((runs) => Response.json(runs.map(({ callId }) => callId)))),
    },
    {
      method: 'GET',
      path: '/calls/:call',
      answer$: ({ chatOf$, ids }) =>
        chatOf$(ids['call'] ?? '').pipe(
          concatMap(({ id, history$ }) =>
            history$().pipe(map(({ messages }) => Response.json([id, messages.length]))),
          ),
        ),
    },
  ];
  const userOf = ({ headers }: Request) => headers.get('authorization') ?? undefined;
  const visit = (server: ChatServer, path: string, authorization: string, init: RequestInit = {}) =>
    server.respond(new Request(`http://localhost${path}`, { ...init, headers: { authorization } }));

  it('has routes of its own, for the same conversations and under the same guards', async () => {
    const entries: AccessEntry[] = [];
    const model = scriptedModel([text('One.')], [text('Two.')]);
    const server = chatServer(createAgent({ name: 'helper', model }), {
      protocols: [plain],
      user: userOf,
      onAccess: (entry) => entries.push(entry),
    });
    servers.push(server);
    const asked = await visit(server, '/ask.txt/a?q=1', 'ann');
    const answer = (await asked.json()) as string[];
    expect([asked.status, answer]).toEqual([201, ['helper', 'ann', expect.anything(), 'One.']]);
    const callId = answer[2] ?? '';
    expect(await (await visit(server, `/calls/${callId}`, 'ann')).json()).toEqual(['a', 2]);
    // Neither the users nor the dot of the path are patterns.
    expect((await visit(server, `/calls/${callId}`, 'an')).status).toBe(404);
    expect((await visit(server, '/calls/unknown', 'ann')).status).toBe(404);
    expect((await visit(server, '/askXtxt/a?q=1', 'ann')).status).toBe(404);
    expect((await visit(server, '/ask.txt/%ff?q=1', 'ann')).status).toBe(400);
    expect((await server.respond(new Request('http://localhost/ask.txt/a'))).status).toBe(401);
    const wrong = await visit(server, '/ask.txt/a', 'ann', { method: 'PUT' });
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    const history = await visit(server, '/api/chat/a', 'ann');
    expect(((await history.json()) as { messages: unknown[] }).messages).toHaveLength(2);
    expect(entries.map(({ status }) => status)).toEqual([
      201, 200, 404, 404, 404, 400, 401, 405, 200,
    ]);
  });

  it('reads the events of a call so far, and stops one call', async () => {
    const looking: ChatProtocol = () => [
      {
        method: 'GET',
        path: '/calls/:call/:what',
        answer$: ({ chat, ids: { call = '', what } }) => {
          const { events$, stop$ } = chat('a');
          if (what === 'stop') return stop$(call).pipe(map((stopped) => Response.json(stopped)));
          return events$(call).pipe(
            map(({ type }) => type),
            toArray(),
            map((types) => Response.json(types)),
          );
        },
      },
    ];
    const { answer, say } = held();
    const chat = chatOver([answer], { protocols: [plain, looking] });
    const reader = await chat.begin('One?').then((stream) => {
      say('On');
      return readUntil(stream, 'On');
    });
    await chat.begin('Two?');
    const [running, waiting] = (await (
      await chat.fetch('http://localhost/runs')
    ).json()) as string[];
    const look = async (call: unknown, what: string): Promise<unknown> =>
      (await chat.fetch(`http://localhost/calls/${String(call)}/${what}`)).json();
    const soFar = (await look(running, 'events')) as string[];
    expect([soFar.at(0), soFar.at(-1)]).toEqual(['preCall', 'reasoningChunk']);
    expect(await look(waiting, 'events')).toEqual([]);
    expect(await look('unknown', 'events')).toMatchObject({ code: 'invalidResume' });
    expect([await look(waiting, 'stop'), await look('unknown', 'stop')]).toEqual([1, 0]);
    expect(await (await chat.fetch('http://localhost/runs')).json()).toEqual([running]);
    expect(await look(running, 'stop')).toBe(1);
    await reader.cancel();
  });

  it('has a document that anyone may read', async () => {
    const open: ChatProtocol = () => [
      {
        method: 'GET',
        path: '/about',
        isPublic: true,
        answer$: ({ user }) => of(Response.json({ user })),
      },
    ];
    const agent = createAgent({ name: 'helper', model: scriptedModel() });
    const server = chatServer(agent, { protocols: [open], user: () => undefined });
    servers.push(server);
    const about = await server.respond(new Request('http://localhost/about'));
    expect([about.status, await about.json()]).toEqual([200, {}]);
    expect((await server.respond(new Request('http://localhost/api/chat/a'))).status).toBe(401);
  });

  it('may answer with a stream of its own', async () => {
    const entries: AccessEntry[] = [];
    const streaming: ChatProtocol = () => [
      {
        method: 'GET',
        path: '/raw',
        answer$: () =>
          of(
            new Response('data: 1\n\n', {
              headers: { 'content-type': 'text/event-stream; charset=utf-8' },
            }),
          ),
      },
    ];
    const server = chatServer(createAgent({ name: 'helper', model: scriptedModel() }), {
      protocols: [streaming],
      onAccess: (entry) => entries.push(entry),
    });
    servers.push(server);
    const response = await server.respond(new Request('http://localhost/raw'));
    expect(entries).toEqual([]);
    expect([await response.text(), entries.length]).toEqual(['data: 1\n\n', 1]);
  });

  it('may stream a call in a format of its own, which ends when its reader leaves', async () => {
    const own: ChatProtocol = () => [
      {
        method: 'POST',
        path: '/lines',
        answer$: ({ alone$ }) =>
          alone$({ input: '?', history: [], metadata: {} }).pipe(
            concatMap(({ stream$ }) =>
              stream$({ headers: {}, encode$: map(({ type }) => ({ type })) }),
            ),
          ),
      },
    ];
    const entries: AccessEntry[] = [];
    const { server } = chatOver([() => NEVER, () => NEVER], {
      protocols: [own],
      maxCalls: 1,
      onAccess: (entry) => entries.push(entry),
    });
    for (const ended of [0, 1]) {
      const request = new Request('http://localhost/lines', { method: 'POST' });
      const reader = (await server.respond(request)).body?.getReader();
      expect((await reader?.read())?.done).toBe(false);
      expect(entries).toHaveLength(ended);
      await reader?.cancel();
      expect(entries[ended]?.status).toBe(200);
    }
  });

  it('sends everything that was encoded before its encoder fails', async () => {
    const failing: ChatProtocol = () => [
      {
        method: 'POST',
        path: '/failing',
        answer$: ({ chat }) =>
          chat('a')
            .start$({ input: '?' })
            .pipe(
              concatMap((callId) =>
                chat('a').stream$(callId, {
                  headers: {},
                  encode$: map(({ type }) => {
                    if (type === 'postReasoning') throw new Error('It cannot be encoded.');
                    return { type };
                  }),
                }),
              ),
            ),
      },
    ];
    const { server } = chatOver([[text('Yes.')]], { protocols: [failing] });
    const request = new Request('http://localhost/failing', { method: 'POST' });
    const reader = (await server.respond(request)).body?.getReader();
    let seen = '';
    const read = async (): Promise<void> => {
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
        seen += new TextDecoder().decode(next.value);
      }
    };
    await expect(read()).rejects.toThrow('It cannot be encoded.');
    expect(seen).toContain('reasoningChunk');
  });
});

describe('a call that is aborted before it is durable', () => {
  it('shows no more than the next server can retract', async () => {
    const driver = inProcessCalls();
    let isFull = false;
    const claim$: typeof driver.claim$ = (id) =>
      driver.claim$(id).pipe(
        map((claim) => ({
          append$: (records) =>
            isFull
              ? throwError(() => new Error('secret: the disk is full'))
              : claim.append$(records),
        })),
      );
    const store = {
      calls: createCallStore({ ...driver, claim$ }),
      sessions: inProcessSessions(),
    };
    const { answer, say, end } = held();
    const errors: string[] = [];
    const chat = chatOver([answer], { store, onError: ({ code }) => errors.push(code) });
    chat.say('A story?');
    const asked = await chat.post('/chat', { id: 'a', messages: chat.messages });
    say('old0 ');
    const reader = asked.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = '';
    while (!seen.includes('old0')) seen += (await reader?.read())?.value ?? '';
    isFull = true;
    for (let at = 1; at <= 300; at += 1) say(`old${at} `);
    end();
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
      seen += next.value;
    }
    expect(Number(/.*old(\d+)/su.exec(seen)?.[1])).toBeLessThanOrEqual(64);
    expect(seen).toContain('"type":"error"');
    expect(seen).not.toContain('secret');
    expect(errors).toContain('store');
  });
});

describe('the limits of a user', () => {
  const asking = (options: ChatServerOptions) => {
    const server = chatServer(
      createAgent({
        name: 'helper',
        model: scriptedModel(
          () => NEVER,
          () => NEVER,
          () => NEVER,
        ),
      }),
      {
        user: ({ headers }) => headers.get('authorization') ?? undefined,
        ...options,
      },
    );
    servers.push(server);
    let chats = 0;
    return async (authorization: string) => {
      chats += 1;
      const messages = [{ id: 'q', role: 'user', parts: [{ type: 'text', text: '?' }] }];
      const { status, headers } = await server.respond(
        new Request(`${base}/chat`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization },
          body: JSON.stringify({ id: `chat-${chats}`, messages }),
        }),
      );
      return [status, Number(headers.get('retry-after') ?? 0)];
    };
  };

  it('bound the calls that run', async () => {
    const ask = asking({ limits: userLimits({ calls: 1 }) });
    expect(await ask('ann')).toEqual([200, 0]);
    expect(await ask('ann')).toEqual([429, 0]);
    expect(await ask('an')).toEqual([200, 0]);
    expect(await ask('a')).toEqual([200, 0]);
  });

  it('bound the calls in a minute', async () => {
    const ask = asking({ limits: userLimits({ perMinute: 1 }) });
    expect(await ask('ann')).toEqual([200, 0]);
    const [status, seconds] = await ask('ann');
    expect(status).toBe(429);
    expect(seconds).toBeGreaterThan(50);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(await ask('bob')).toEqual([200, 0]);
  });
});

describe('a silent stream', () => {
  it('has comments, so that proxies keep it open', async () => {
    const chat = chatOver([() => NEVER], { heartbeatMs: 1 });
    chat.say('?');
    const { body } = await chat.post('/chat', { id: 'a', messages: chat.messages });
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value } = (await reader?.read()) ?? {};
      if (value === ': \n\n') break;
    }
    await reader?.cancel();
  });
});
