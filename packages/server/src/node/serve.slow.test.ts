import { describe, expect, it } from '@jest/globals';
import { HttpAgent } from '@ag-ui/client';
import { agUi } from '../ag-ui/index.js';
import { createAgent, type ModelChunk } from 'millrace';
import { type ScriptedAnswer, scriptedModel, text } from 'millrace/testing';
import { DefaultChatTransport } from 'ai';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { firstValueFrom, lastValueFrom, of, ReplaySubject, Subject, takeUntil } from 'rxjs';
import { answerAmong, answerIn, readStream, watched } from '../read-as-client.test-support.js';
import { serve, type Served, type ServeOptions } from './index.js';

/** Serves an agent with these answers while the test lasts. */
const serving = async <T>(
  answers: readonly ScriptedAnswer[],
  test: (served: Served) => Promise<T>,
  options: ServeOptions = {},
): Promise<T> => {
  const over$ = new Subject<void>();
  const agent = createAgent({ name: 'helper', model: scriptedModel(...answers) });
  const served$ = new ReplaySubject<Served>(1);
  serve(agent, { port: 0, signals: [], protocols: [agUi()], ...options })
    .pipe(takeUntil(over$))
    .subscribe(served$);
  try {
    return await test(await firstValueFrom(served$));
  } finally {
    over$.next();
  }
};

const asking = (url: string, question: string) =>
  new DefaultChatTransport({ api: `${url}/api/chat` }).sendMessages({
    trigger: 'submit-message',
    chatId: 'a',
    messageId: undefined,
    messages: [{ id: `q-${question}`, role: 'user', parts: [{ type: 'text', text: question }] }],
    abortSignal: undefined,
  });

const agUiClient = (url: string, question: string) =>
  new HttpAgent({
    url: `${url}/api/ag-ui`,
    threadId: 'a',
    initialMessages: [{ id: 'q', role: 'user', content: question }],
  });

describe('a server on a port', () => {
  it('answers clients of both protocols in one conversation', () =>
    serving([[text('Hello Ann.')], [text('You are Ann.')]], async ({ url }) => {
      const { message, errors } = await readStream(await asking(url, 'I am Ann.'));
      expect([answerIn(message), errors]).toEqual(['Hello Ann.', []]);
      const run = await watched(agUiClient(url, 'Who am I?'));
      expect([answerAmong(run), run.errors]).toEqual(['You are Ann.', []]);
    }));

  it('gives a client of AG-UI that connects the messages, and the rest of the running call', () => {
    const piece$ = new ReplaySubject<ModelChunk>(Infinity);
    return serving([[text('One.')], () => piece$], async ({ url }) => {
      await readStream(await asking(url, '1?'));
      const connecting = () =>
        watched(new HttpAgent({ url: `${url}/api/ag-ui/connect`, threadId: 'a' }));
      const ended = await connecting();
      expect(ended.errors).toEqual([]);
      expect(ended.messages.map(({ role, content }) => [role, content])).toEqual([
        ['user', '1?'],
        ['assistant', 'One.'],
      ]);
      piece$.next({ type: 'text', text: 'Tw' });
      const running = await asking(url, '2?');
      const joined = connecting();
      piece$.next({ type: 'text', text: 'o.' });
      piece$.next({ type: 'finish', finish: 'stop' });
      piece$.complete();
      const { messages, errors } = await joined;
      expect(errors).toEqual([]);
      expect(messages.map(({ role, content }) => [role, content])).toEqual([
        ['user', '1?'],
        ['assistant', 'One.'],
        ['user', '2?'],
        ['assistant', 'Two.'],
      ]);
      expect(answerIn((await readStream(running)).message)).toBe('Two.');
    });
  });

  it('refuses a port that is taken, and public addresses without authentication', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    // It does not touch the store that the other server may use.
    const store = { calls: {}, sessions: { load$: () => of(undefined) } } as never;
    const agent = createAgent({ model: scriptedModel() });
    await expect(firstValueFrom(serve(agent, { port, store }))).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining(`127.0.0.1:${port}`),
    });
    other.close();
    expect(() => serve(agent, { host: '0.0.0.0' })).toThrow("'user'");
  });

  it('closes by itself: the running call ends as its protocol requires', () =>
    serving(
      [() => new Subject<ModelChunk>()],
      async ({ url, close$ }) => {
        const stream = await asking(url, '?');
        const read = readStream(stream);
        await lastValueFrom(close$, { defaultValue: undefined });
        expect((await read).errors).toEqual([]);
        await expect(fetch(url)).rejects.toThrow();
      },
      { closeMs: 0 },
    ));
});
