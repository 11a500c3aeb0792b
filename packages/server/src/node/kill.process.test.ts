import { afterEach, describe, expect, it } from '@jest/globals';
import { HttpAgent } from '@ag-ui/client';
import { DefaultChatTransport } from 'ai';
import { answerAmong, answerIn, readStream, watched } from '../read-as-client.test-support.js';
import { inDirectory, killServers, startServer } from './server-process.test-support.js';

/** Serves an agent over a directory of files. Its model says the text of an argument. */
const script = `
import { createAgent } from '@millrace/core';
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
