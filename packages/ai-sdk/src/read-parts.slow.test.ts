import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createAgent, type Message, type Reply, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { lentContext } from 'millrace/testing';
import { lastValueFrom, toArray } from 'rxjs';
import { aiSdkModel } from './index.js';
import { call, finish, playParts, preview, text } from './parts.test-support.js';

/** Runs a call with a tool that keeps its inputs. The second request is answered with `Done.`. */
const run = async (parts: readonly unknown[], options: Parameters<typeof playParts>[1] = {}) => {
  const runs: unknown[] = [];
  const model = playParts([parts, [...text('1', 'Done.'), finish()]], options);
  const add = tool({
    name: 'add',
    description: 'Adds.',
    input: jsonSchema({ type: 'object', additionalProperties: true }),
    run: (input) => {
      runs.push(input);
      return 'ok';
    },
  });
  const agent = createAgent({ model: aiSdkModel(model, { retry: false }), tools: [add] });
  const messages: Message[] = [];
  const ended = await lastValueFrom(agent.stream$('Hi!').pipe(toArray())).then(
    (events) => {
      for (const it of events) if (it.type === 'messagesAppended') messages.push(...it.messages);
      return { reply: events.flatMap((it) => (it.type === 'postCall' ? [it.reply] : []))[0] };
    },
    (error: unknown) => ({ error }),
  );
  return { runs, model, messages, ...ended } as {
    runs: unknown[];
    model: typeof model;
    messages: Message[];
    reply?: Reply;
    error?: unknown;
  };
};

const raw = (rawValue: unknown): unknown => ({ type: 'raw', rawValue });

const promptOf = ({ asked }: ReturnType<typeof playParts>, index = 1): readonly unknown[] =>
  asked[index]?.prompt ?? [];

describe('the end of an answer decides', () => {
  it('on the arguments of a tool: what streamed before is a preview', async () => {
    const parts = [...preview('1', 'add', '{"a":', '1}'), call('1', 'add', '{"a":2}')];
    expect((await run([...parts, finish('tool-calls')])).runs).toEqual([{ a: 2 }]);
  });

  it('on whether a tool runs: a call that only started does not, even if its preview is complete', async () => {
    const { runs, error } = await run([...preview('1', 'add', '{"a":1}'), finish('tool-calls')]);
    expect(runs).toEqual([]);
    expect(error).toMatchObject({ code: 'invalidResponse', retryable: true });
  });

  it.each([
    ['ends without a finish', []],
    ['was interrupted', [finish('interrupted', 'eof')]],
    ['ends without a reason of the vendor', [finish('other', '')]],
    ['has an unknown reason', [finish('novel', 'novel')]],
  ])('on whether it is complete: one that %s is an error', async (_, end) => {
    const { error } = await run([...text('1', 'Half'), ...end]);
    expect(error).toMatchObject({ code: 'invalidResponse', retryable: true, partial: 'Half' });
  });

  it('on the usage: it is that of the finish, without the tokens of the cache', async () => {
    const { reply } = await run([...text('1', 'Yes.'), finish()]);
    expect(reply?.usage).toEqual({
      ...{ inputTokens: 6, outputTokens: 5, cacheReadTokens: 3, cacheWriteTokens: 1 },
    });
  });

  it.each([null, 1, 'text', []])('not on an event that its package refuses: %j', async (value) => {
    const refused = (it: unknown) => ({
      type: 'error',
      error: Object.assign(new Error('No.'), { name: 'AI_TypeValidationError', value: it }),
    });
    const { error } = await run([refused(value), ...text('1', 'Whole'), finish()]);
    expect(error).toBeUndefined();
    expect((await run([refused(value), ...text('1', 'Half')])).error).toMatchObject({
      code: 'invalidResponse',
    });
  });

  it.each([{ text: 'No.' }, [{ choices: [{ delta: { content: 'No.' } }] }], [null]])(
    'on an event that its package refuses, and that may have content: %j',
    async (value) => {
      const error = Object.assign(new Error('No.'), { name: 'AI_TypeValidationError', value });
      const { error: missed } = await run([
        { type: 'error', error },
        ...text('1', 'Rest'),
        finish(),
      ]);
      expect(missed).toMatchObject({ code: 'invalidResponse' });
    },
  );

  it.each([
    ['by an error part', [{ type: 'error', error: { message: 'It broke.' } }, finish('error')]],
    ['by an event of the vendor', [raw({ error: { message: 'It broke.' } }), finish()]],
    [
      'by a choice of the vendor',
      [raw({ choices: [{ error: { message: 'It broke.' } }] }), ...text('2', 'More.'), finish()],
    ],
    ['by its finish', [finish('error')]],
    ['by a tool call that is missing', [...preview('1', 'add', '{'), finish()]],
    ['by an error after its finish', [finish(), { type: 'error', error: { message: 'Late.' } }]],
    [
      'by an error, and then its connection',
      [{ type: 'error', error: { message: 'It broke.' } }, finish('error'), new TypeError('lost')],
    ],
  ])('on the usage, also of an answer that fails %s', async (_, end) => {
    const { error } = await run([...text('1', 'Half'), ...end]);
    expect(error).toMatchObject({ usage: { inputTokens: 6, outputTokens: 5 } });
  });

  it('unless it failed before: then the stream need not end', async () => {
    const failed = { type: 'error', error: { message: 'It broke.' } };
    const { error, model } = await run([...text('1', 'Half'), failed], { holds: true });
    expect(error).toMatchObject({ code: 'server', partial: 'Half' });
    expect(model.counts.cancelled).toBe(1);
    const { error: lost } = await run([failed, new TypeError('terminated')]);
    expect(lost).toMatchObject({ code: 'server', message: expect.stringContaining('It broke.') });
  });

  it('not if the connection is lost after it, but if the provider reports an error after it', async () => {
    const answer = [...text('1', 'Yes.'), finish()];
    expect((await run([...answer, new TypeError('terminated')])).reply?.text).toBe('Yes.');
    const { error } = await run([...answer, { type: 'error', error: { message: 'Late.' } }]);
    expect(error).toMatchObject({ code: 'server' });
  });

  it('also while the stream stays open', async () => {
    const { reply, model } = await run([...text('1', 'Yes.'), finish()], { holds: true });
    expect(reply?.text).toBe('Yes.');
    expect(model.counts.cancelled).toBe(1);
  });

  it('however the arguments are cut into deltas, and however calls interleave', async () => {
    const inputs = fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(inputs, fc.infiniteStream(fc.nat(9)), async (wanted, sizes) => {
        const queues = wanted.map((input, index) => {
          const deltas: string[] = [];
          let json = JSON.stringify(input);
          while (json !== '') {
            const size = 1 + (sizes.next().value ?? 0);
            deltas.push(json.slice(0, size));
            json = json.slice(size);
          }
          return [
            ...preview(`${index}`, 'add', ...deltas),
            call(`${index}`, 'add', JSON.stringify(input)),
          ];
        });
        const parts: unknown[] = [];
        while (queues.some((it) => it.length > 0)) {
          const open = queues.filter((it) => it.length > 0);
          parts.push(open[(sizes.next().value ?? 0) % open.length]?.shift());
        }
        const chunks = await lastValueFrom(
          aiSdkModel(playParts([[...parts, finish()]]))
            .stream$({ messages: [] }, lentContext())
            .pipe(toArray()),
        );
        const joined = new Map<number | undefined, string>();
        for (const it of chunks) {
          if (it.type !== 'toolCall') continue;
          expect(it.input).toBeUndefined();
          joined.set(it.index, (joined.get(it.index) ?? '') + (it.json ?? ''));
        }
        expect([...joined.values()].sort()).toEqual(wanted.map((it) => JSON.stringify(it)).sort());
      }),
    );
  });
});

describe('hostile parts', () => {
  it('X7: parallel calls with one id run', async () => {
    const { runs } = await run([
      call('1', 'add', '{"a":1}'),
      call('1', 'add', '{"a":2}'),
      finish(),
    ]);
    expect(runs).toEqual([{ a: 1 }, { a: 2 }]);
  });

  it.each(['not json', '[1]', '"text"'])(
    'arguments such as %s do not run a tool',
    async (input) => {
      const { runs, reply } = await run([call('1', 'add', input), finish()]);
      expect(runs).toEqual([]);
      expect(reply?.toolCalls[0]?.isError).toBe(true);
      const other = await run([...preview('1', 'add', '{}'), call('1', 'add', input), finish()]);
      expect(other.runs).toEqual([]);
    },
  );

  it('integers that JavaScript would round do not run a tool', async () => {
    const { runs } = await run([call('1', 'add', '{"a":12345678901234567890}'), finish()]);
    expect(runs).toEqual([]);
  });

  it('a call without a name does not run, and does not end the call', async () => {
    const { runs, reply } = await run([call('1', '', '{}'), finish()]);
    expect(runs).toEqual([]);
    expect(reply?.text).toBe('Done.');
  });

  it('a delta of a call that has not started is an error', async () => {
    const { error } = await run([{ type: 'tool-input-delta', id: '9', delta: '{}' }, finish()]);
    expect(error).toMatchObject({ code: 'invalidResponse' });
  });

  it('anything else is ignored, or an error with a code', async () => {
    const types = [
      ...[
        'stream-start',
        'text-start',
        'text-delta',
        'text-end',
        'reasoning-delta',
        'reasoning-end',
      ],
      ...[
        'tool-input-start',
        'tool-input-end',
        'tool-call',
        'tool-result',
        'source',
        'file',
        'ping',
      ],
      ...['reasoning-file', 'custom', 'response-metadata', 'finish', 'raw', 'error', 'future'],
    ];
    const part = fc.oneof(
      fc.anything(),
      fc.record(
        {
          type: fc.constantFrom(...types),
          id: fc.anything(),
          delta: fc.anything(),
          input: fc.anything(),
          error: fc.anything(),
          data: fc.anything(),
          providerMetadata: fc.anything(),
          finishReason: fc.anything(),
        },
        { requiredKeys: ['type'] },
      ),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(part), async (parts) => {
        const { reply, error } = await run(parts.filter((it) => it !== undefined));
        if (reply === undefined) expect(error).toHaveProperty('code');
      }),
    );
  });
});

describe('what goes back to the provider', () => {
  it('metadata of thoughts, text, tool calls and files', async () => {
    const meta = (value: string) => ({ providerMetadata: { acme: { value } } });
    const { model } = await run([
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'Hm.' },
      { type: 'reasoning-end', id: 'r', ...meta('signed') },
      { type: 'text-start', id: 't', ...meta('said') },
      { type: 'text-delta', id: 't', delta: 'See:' },
      { type: 'text-end', id: 't' },
      { type: 'file', mediaType: 'image/png', data: new Uint8Array([1, 2]), ...meta('drawn') },
      call('1', 'add', '{}', meta('called')),
      finish('tool-calls'),
    ]);
    const options = (value: string) => ({ providerOptions: { acme: { value } } });
    expect(promptOf(model)[1]).toEqual({
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.', ...options('signed') },
        { type: 'text', text: 'See:', ...options('said') },
        { type: 'file', mediaType: 'image/png', data: 'AQI=', ...options('drawn') },
        {
          ...{ type: 'tool-call', toolCallId: '1', toolName: 'add', input: {} },
          ...options('called'),
        },
      ],
    });
  });

  it('tools that the provider ran, with their results, and parts that only it knows', async () => {
    const { model, runs } = await run(
      [
        call('s', 'web_search', '{"q":"x"}', { providerExecuted: true }),
        {
          type: 'tool-result',
          toolCallId: 's',
          toolName: 'web_search',
          result: 'p',
          preliminary: true,
        },
        { type: 'tool-result', toolCallId: 's', toolName: 'web_search', result: [{ url: 'u' }] },
        { type: 'custom', kind: 'acme.seal', providerMetadata: { acme: { seal: 1 } } },
        call('1', 'add', '{}'),
        finish('tool-calls'),
      ],
      { version: 'v4' },
    );
    expect(runs).toEqual([{}]);
    expect(promptOf(model)[1]).toMatchObject({
      content: [
        { type: 'tool-call', toolCallId: 's', input: { q: 'x' }, providerExecuted: true },
        { type: 'tool-result', toolCallId: 's', output: { type: 'json', value: [{ url: 'u' }] } },
        { type: 'custom', kind: 'acme.seal', providerOptions: { acme: { seal: 1 } } },
        { type: 'tool-call', toolCallId: '1' },
      ],
    });
  });

  it('sources are citations, exact ones with their range', async () => {
    const source = { type: 'source', sourceType: 'url', id: 's1', url: 'https://a.example/' };
    const other = { ...source, id: 's2', url: 'https://b.example/' };
    const cited = {
      type: 'text-end',
      id: 't',
      citations: [{ source: { ...source, id: 'c1' }, startIndex: 0, endIndex: 4 }],
    };
    const { reply } = await run(
      [source, other, ...text('t', 'Snow').slice(0, -1), cited, finish()],
      {
        version: 'v4',
      },
    );
    expect(reply?.content).toMatchObject([
      {
        type: 'text',
        citations: [{ url: 'https://a.example/', start: 0, end: 4 }, { url: 'https://b.example/' }],
      },
    ]);
  });

  it('texts of one answer stay apart', async () => {
    const { reply } = await run([...text('1', 'One.'), ...text('2', 'Two.'), finish()]);
    expect(reply?.content).toHaveLength(2);
  });
});
