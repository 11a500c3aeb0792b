import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type ModelChunk } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import OpenAI from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import {
  finalize,
  firstValueFrom,
  NEVER,
  Observable,
  ReplaySubject,
  Subject,
  takeUntil,
} from 'rxjs';
import { openAi } from '../openai/index.js';
import { serve, type Served } from './index.js';
import { inDirectory, killServers, startServer } from './server-process.test-support.js';

const model = 'helper';
const clientOf = (url: string) => new OpenAI({ apiKey: 'none', baseURL: `${url}/v1` });

/** Serves an agent over a directory of files. Its model says an argument, and the wishes of the request. */
const script = `
import { createAgent } from 'millrace';
import { openAi } from '@millrace/server/openai';
import { serve } from '@millrace/server/node';
import { openFiles } from '@millrace/store';
import { concat, NEVER, of } from 'rxjs';

const [, directory, says, ends] = process.argv;
const model = {
  name: 'told',
  stream$: ({ system, tools = [] }) => {
    const text = [says, system, ...tools.map(({ name }) => name)].join(' ');
    return concat(
      of({ type: 'text', text }),
      ends === 'yes' ? of({ type: 'finish', finish: 'stop' }) : NEVER,
    );
  },
};
const options = { port: 0, closeMs: 100, store: openFiles(directory), protocols: [openAi()] };
serve(createAgent({ name: 'helper', model }), options).subscribe(({ url }) => console.log(url));
`;

afterEach(killServers);

const start = async (directory: string, says: string, ends: 'yes' | 'no') => {
  const { child, url, exited } = await startServer(script, directory, says, ends);
  return { client: clientOf(url), kill: () => child.kill('SIGKILL') && exited };
};

const deltasIn = (events: readonly ResponseStreamEvent[]): string =>
  events.map((it) => (it.type === 'response.output_text.delta' ? it.delta : '')).join('');

/** Reads until the text contains this, or to the end. */
const read = async (stream: AsyncIterable<ResponseStreamEvent>, wanted?: string) => {
  const events: ResponseStreamEvent[] = [];
  for await (const event of stream) {
    events.push(event);
    if (wanted !== undefined && deltasIn(events).includes(wanted)) break;
  }
  return events;
};

describe('a response of a server that is killed midway', () => {
  it('is continued by the next one, and ends without the text of the broken attempt', () =>
    inDirectory(async (directory) => {
      const first = await start(directory, 'Broken', 'no');
      const { id } = await first.client.responses.create({
        model,
        input: 'A story?',
        background: true,
        instructions: 'Kindly,',
        metadata: { of: 'a test' },
        tools: [
          { type: 'function', strict: false, name: 'weather', parameters: { type: 'object' } },
        ],
      });
      const before = await read(
        await first.client.responses.retrieve(id, { stream: true }),
        'Broken Kindly, weather',
      );
      await first.kill();

      const { client } = await start(directory, 'Whole', 'yes');
      const last = before.at(-1)?.sequence_number ?? 0;
      const after = await read(
        await client.responses.retrieve(id, { stream: true, starting_after: last }),
      );
      expect(after[0]?.sequence_number).toBeGreaterThan(last);
      expect(deltasIn(after)).toBe('Whole Kindly, weather');
      const emptied = after.find(({ type }) => type === 'response.output_item.done');
      expect(emptied).toMatchObject({
        output_index: 0,
        item: { status: 'incomplete', content: [] },
      });

      const whole = await read(await client.responses.retrieve(id, { stream: true }));
      expect(deltasIn(whole)).toBe('Whole Kindly, weather');
      const all = [...before, ...after];
      const numbers = all.map(({ sequence_number }) => sequence_number);
      expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
      expect(all).toEqual(expect.arrayContaining(whole));
      const output_text = 'Whole Kindly, weather';
      const stream = client.responses.stream({ response_id: id, starting_after: last });
      expect((await stream.finalResponse()).output_text).toBe(output_text);
      expect(await client.responses.retrieve(id)).toMatchObject({
        status: 'completed',
        output_text,
        output: { length: 1 },
        metadata: { of: 'a test' },
      });
      const next = client.responses.create({ model, input: '?', previous_response_id: id });
      expect((await next).output_text.trim()).toBe('Whole');
    }));
});

describe('a server on a port', () => {
  it('is a model for the SDK of OpenAI, and cuts a completion whose client leaves', async () => {
    const over$ = new Subject<void>();
    const served$ = new ReplaySubject<Served>(1);
    const asked$ = new ReplaySubject<void>(1);
    const cut$ = new ReplaySubject<void>(1);
    const endless = () =>
      new Observable<ModelChunk>((subscriber) => {
        asked$.next();
        return NEVER.subscribe(subscriber);
      }).pipe(
        finalize(() => {
          cut$.next();
        }),
      );
    const script = scriptedModel([text('Hello.')], [text('Hel'), text('lo.')], endless, endless);
    serve(createAgent({ name: model, model: script }), {
      port: 0,
      signals: [],
      protocols: [openAi()],
    })
      .pipe(takeUntil(over$))
      .subscribe(served$);
    try {
      const client = clientOf((await firstValueFrom(served$)).url);
      const request = { model, messages: [{ role: 'user' as const, content: 'Hi' }] };
      const { choices } = await client.chat.completions.create(request);
      expect(choices[0]?.message.content).toBe('Hello.');
      const stream = client.chat.completions.stream(request);
      expect(await stream.finalContent()).toBe('Hello.');

      const leaving = new AbortController();
      const { signal } = leaving;
      const left = client.chat.completions.create(request, { signal });
      left.catch(() => undefined);
      await firstValueFrom(asked$);
      leaving.abort();
      await expect(left).rejects.toThrow('aborted');
      await firstValueFrom(cut$);
    } finally {
      over$.next();
    }
  });
});
