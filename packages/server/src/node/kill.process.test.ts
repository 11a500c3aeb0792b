import { afterEach, describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HttpAgent } from '@ag-ui/client';
import { DefaultChatTransport, type UIMessage } from 'ai';
import { fieldOf } from '../inbound.js';
import { answerAmong, answerIn, readStream, watched } from '../read-as-client.test-support.js';
import { inDirectory, killServers, startServer } from './server-process.test-support.js';

/** Serves an agent over a directory of files. Its model says the text of an argument. */
const script = `
import { createAgent } from 'millrace';
import { agUi } from '@millrace/server/ag-ui';
import { serve } from '@millrace/server/node';
import { openFiles } from '@millrace/store';
import { concat, NEVER, of } from 'rxjs';

const [, directory, says, ends] = process.argv;
const text = { type: 'text', text: says };
const model = {
  name: 'told',
  stream$: () => concat(of(text), ends === 'yes' ? of({ type: 'finish', finish: 'stop' }) : NEVER),
};
const options = { port: 0, closeMs: 100, store: openFiles(directory), protocols: [agUi()] };
serve(createAgent({ name: 'helper', model }), options).subscribe({
  next: ({ url }) => console.log(url),
  complete: () => console.log('closed'),
});
`;

/** Its tool never ends, and its model repeats the results that it gets. */
const payingScript = `
import { createAgent, textOf, tool } from 'millrace';
import { openAi } from '@millrace/server/openai';
import { agUi } from '@millrace/server/ag-ui';
import { serve } from '@millrace/server/node';
import { openFiles } from '@millrace/store';
import { appendFileSync } from 'node:fs';
import { NEVER } from 'rxjs';

const [, directory, onSuspended] = process.argv;
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  run: () => {
    appendFileSync(directory + '/paid', 'paid ');
    return NEVER;
  },
});
const model = {
  name: 'repeating',
  stream$: ({ messages }) => {
    const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content.map(textOf) : []));
    return results.length === 0
      ? [{ type: 'toolCall', id: 'p', name: 'pay', json: '{}' }, { type: 'finish', finish: 'stop' }]
      : [{ type: 'text', text: results.join() }, { type: 'finish', finish: 'stop' }];
  },
};
const options = { port: 0, store: openFiles(directory), protocols: [agUi(), openAi()], onSuspended };
serve(createAgent({ name: 'helper', model, tools: [pay] }), options).subscribe(({ url }) => console.log(url));
`;

/** Sends a message with the history, as `useChat` does, and returns the answer. */
const sent = async (url: string, messages: readonly UIMessage[]) => {
  const stream = await new DefaultChatTransport({ api: `${url}/api/chat` }).sendMessages({
    trigger: 'submit-message',
    chatId: 'a',
    messageId: undefined,
    messages: [...messages],
    abortSignal: undefined,
  });
  const { message, errors } = await readStream(stream);
  return [answerIn(message), ...errors].join('');
};
const messageOf = (id: string, text: string): UIMessage => ({
  ...{ id, role: 'user', parts: [{ type: 'text', text }] },
});
const historyOf = async (url: string): Promise<readonly UIMessage[]> => {
  const body: unknown = await (await fetch(`${url}/api/chat/a`)).json();
  return fieldOf(body, 'messages') as readonly UIMessage[];
};
const until = async (isSo: () => Promise<boolean>): Promise<void> => {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
};

afterEach(killServers);

const start = (directory: string, says: string, ends: 'yes' | 'no') =>
  startServer(script, directory, says, ends);

const asking = (url: string) =>
  new DefaultChatTransport({ api: `${url}/api/chat` }).sendMessages({
    trigger: 'submit-message',
    chatId: 'a',
    messageId: undefined,
    messages: [{ id: 'q', role: 'user', parts: [{ type: 'text', text: 'A story?' }] }],
    abortSignal: undefined,
  });
const joining = (url: string) =>
  new DefaultChatTransport({ api: `${url}/api/chat` }).reconnectToStream({ chatId: 'a' });

describe('a server over a directory of files', () => {
  it.each(['cancel', 'refuse'])(
    'T13: is killed in a tool with effects: a message is answered, and the model reads that the end is unknown (%s)',
    (onSuspended) =>
      inDirectory(async (directory) => {
        const paid = (): Promise<string> => readFile(join(directory, 'paid'), 'utf8');
        const first = await startServer(payingScript, directory, onSuspended, 'no');
        void asking(first.url).catch(() => undefined);
        await until(() =>
          paid().then(
            () => true,
            () => false,
          ),
        );
        first.child.kill('SIGKILL');
        await first.exited;

        const { url } = await startServer(payingScript, directory, onSuspended, 'no');
        // The call has continued, and waits.
        await until(async () => JSON.stringify(await historyOf(url)).includes('tool-pay'));
        const next = sent(url, [...(await historyOf(url)), messageOf('q2', 'Hello?')]);
        if (onSuspended === 'refuse') {
          await expect(next).rejects.toThrow('The conversation waits for a decision');
          const stopped = await fetch(`${url}/api/chat/a/stop`, { method: 'POST' });
          expect(await stopped.json()).toEqual({ stopped: 1 });
          const again = sent(url, [...(await historyOf(url)), messageOf('q3', 'Hello?')]);
          expect(await again).toContain('It is unknown whether this has run');
        } else {
          expect(await next).toContain('It is unknown whether this has run');
        }
        expect(await paid()).toBe('paid ');
      }),
  );

  it('is killed in the middle of an answer: every client of the next one ends with the same one message', () =>
    inDirectory(async (directory) => {
      const first = await start(directory, 'Broken', 'no');
      const reader = (await asking(first.url)).getReader();
      for (let seen = ''; !seen.includes('Broken');) {
        const { value } = await reader.read();
        if (value?.type === 'text-delta') seen += value.delta;
      }
      first.child.kill('SIGKILL');
      await first.exited;
      await expect(reader.read()).rejects.toThrow();

      const { url } = await start(directory, 'Whole.', 'yes');
      const run = await watched(new HttpAgent({ url: `${url}/api/ag-ui/connect`, threadId: 'a' }));
      expect([answerAmong(run), run.errors]).toEqual(['Whole.', []]);
      const joined = await joining(url);
      if (joined !== null) expect(answerIn((await readStream(joined)).message)).toBe('Whole.');
      const history = await (await fetch(`${url}/api/chat/a`)).text();
      expect(history).toContain('Whole.');
      expect(history).not.toContain('Broken');
    }));

  it('closes on SIGTERM, and the next one continues the call', () =>
    inDirectory(async (directory) => {
      const first = await start(directory, 'Broken', 'no');
      const stream = await asking(first.url);
      first.child.kill('SIGTERM');
      await readStream(stream);
      await first.exited;
      expect(first.lines.at(-1)).toBe('closed');
      const { url } = await start(directory, 'Whole.', 'yes');
      const run = await watched(new HttpAgent({ url: `${url}/api/ag-ui/connect`, threadId: 'a' }));
      expect(answerAmong(run)).toBe('Whole.');
    }));
});
