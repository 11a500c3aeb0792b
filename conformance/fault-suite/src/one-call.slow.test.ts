import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { describe, expect, it } from '@jest/globals';
import { aiSdkModel } from '@millrace/ai-sdk';
import { anthropic } from '@millrace/anthropic';
import { type Answer, streamOf, type Wire } from '@millrace/fault-server';
import { openai } from '@millrace/openai';
import fc from 'fast-check';
import { createAgent, isMillraceError, type Model, textOf, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';

type Fetch = typeof globalThis.fetch;

const key = { apiKey: 'test', baseURL: 'http://127.0.0.1:9/v1' };
const settings = { ...key, retry: false } as const;

/** Each wire, and each again through the packages of the AI SDK, which decode bytes themselves. */
const native: Readonly<Record<Wire, (fetch: Fetch) => Model>> = {
  chat: (fetch) => openai.chat('gpt-5-mini', { ...settings, fetch }),
  responses: (fetch) => openai.responses('gpt-5-mini', { ...settings, fetch }),
  messages: (fetch) => anthropic('claude-sonnet-4-5', { ...settings, fetch }),
};
const throughAiSdk: Readonly<Record<Wire, (fetch: Fetch) => Model>> = {
  chat: (fetch) => aiSdkModel(createOpenAI({ ...key, fetch }).chat('gpt-5-mini'), { retry: false }),
  responses: (fetch) =>
    aiSdkModel(createOpenAI({ ...key, fetch }).responses('gpt-5-mini'), { retry: false }),
  messages: (fetch) =>
    aiSdkModel(createAnthropic({ ...key, fetch })('claude-sonnet-4-5'), { retry: false }),
};
const wires: readonly Wire[] = ['chat', 'responses', 'messages'];

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A response of these bytes, in pieces of this size. */
const respond = (bytes: Uint8Array, size = bytes.length): Response => {
  let from = 0;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (from < bytes.length) controller.enqueue(bytes.slice(from, (from += size)));
      else controller.close();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
};

interface Played {
  /** The tools that ran, with their inputs. */
  readonly runs: readonly unknown[];
  readonly text?: string;
  readonly error?: string;
  readonly isRetryable?: boolean;
  /** What the model was told about the tools that did not run. */
  readonly refusals: readonly string[];
}

/** Answers the first request of an agent with these bytes, and the others with `Done.` */
const play = async (
  wire: Wire,
  make: (fetch: Fetch) => Model,
  bytes: Uint8Array,
  size?: number,
): Promise<Played> => {
  const runs: unknown[] = [];
  let count = 0;
  const done = bytesOf(streamOf(wire, { text: 'Done.' }).join(''));
  const model = make(() => Promise.resolve(count++ === 0 ? respond(bytes, size) : respond(done)));
  const tools = ['pay', 'delete'].map((name) =>
    tool({
      name,
      description: 'Does it.',
      input: jsonSchema({ type: 'object', additionalProperties: true }),
      run: (input) => {
        runs.push([name, input]);
        return 'ok';
      },
    }),
  );
  return createAgent({ model, tools })
    .call('?')
    .then(
      (reply) => ({
        runs,
        text: textOf(reply),
        refusals: reply.toolCalls.flatMap(({ isError, output }) =>
          isError ? [String(output)] : [],
        ),
      }),
      (error: unknown) => ({
        runs,
        refusals: [],
        ...(isMillraceError(error)
          ? { error: error.code, isRetryable: error.retryable }
          : { error: String(error) }),
      }),
    );
};

/** The bytes of an answer in which `§` stands for these bytes. */
const withBytes = (wire: Wire, answer: Answer, bytes: readonly number[]): Uint8Array => {
  const parts = streamOf(wire, answer).join('').split('§').map(bytesOf);
  return Uint8Array.from(
    parts.flatMap((part, index) => (index === 0 ? [...part] : [...bytes, ...part])),
  );
};

const paying = (json: readonly string[], more: Answer = {}): Answer => ({
  ...more,
  toolCalls: [{ id: 'c1', name: 'pay', arguments: json }],
});

const invalid: Readonly<Record<string, readonly number[]>> = {
  'a byte that starts nothing': [0xff],
  'a byte that continues nothing': [0x80],
  'a cut character': [0xe2, 0x82],
  'a half of a surrogate pair': [0xed, 0xa0, 0x80],
  'a character that is too long': [0xc0, 0xaf],
  'a character beyond Unicode': [0xf5, 0x80, 0x80, 0x80],
};

describe.each(wires)('X47: bytes that are not UTF-8, over %s', (wire) => {
  it.each(Object.entries(invalid))(
    'X47: no tool runs with %s in its arguments',
    async (_, bytes) => {
      for (const json of [['{"to":"', 'A§B', '"}'], ['{"t§":"Ada"}'], ['{"to":"A§"', '}']]) {
        for (const size of [undefined, 1, 7]) {
          const played = await play(wire, native[wire], withBytes(wire, paying(json), bytes), size);
          expect(played).toEqual({
            ...{ runs: [], refusals: [] },
            ...{ error: 'connection', isRetryable: true },
          });
        }
      }
    },
  );

  it('X47: text keeps U+FFFD in their place', async () => {
    for (const size of [undefined, 1]) {
      const bytes = withBytes(wire, { text: ['It is ', 'n§ce', '.'] }, [0xff]);
      expect(await play(wire, native[wire], bytes, size)).toMatchObject({
        text: 'It is n\uFFFDce.',
        runs: [],
      });
    }
  });

  it('X47: U+FFFD that the model wrote is an argument like any other, wherever it is cut', async () => {
    for (const size of [undefined, 1, 2, 3]) {
      const bytes = withBytes(wire, paying(['{"to":"', 'A§B', '€😀"}']), [0xef, 0xbf, 0xbd]);
      expect((await play(wire, native[wire], bytes, size)).runs).toEqual([
        ['pay', { to: 'A\uFFFDB€😀' }],
      ]);
    }
  });

  it('X47: one byte that is replaced anywhere leaves the call as it was written, or none', async () => {
    const input = { to: 'Ada', amount: 1200, list: [1, { a: 'b' }] };
    const json = JSON.stringify(input).match(/.{1,4}/gu) ?? [];
    const good = bytesOf(streamOf(wire, paying(json, { text: 'I pay.' })).join(''));
    let failed = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.nat(good.length - 1),
        fc.constantFrom(0xff, 0x80, 0xe2),
        fc.constantFrom(undefined, 1, 50),
        async (at, byte, size) => {
          const { runs, error } = await play(wire, native[wire], good.with(at, byte), size);
          expect([at, runs, error]).toEqual([
            at,
            error === undefined && runs.length > 0 ? [['pay', input]] : [],
            error,
          ]);
          if (error !== undefined) failed += 1;
        },
      ),
      { numRuns: 120 },
    );
    expect(failed).toBeGreaterThan(0);
  });
});

/** Two calls of one answer, and which of them run. */
const pairs: readonly (readonly [string, Answer['toolCalls'], readonly unknown[]])[] = [
  [
    'the same call twice',
    [
      { id: 'c1', name: 'pay', arguments: '{"a":1,"b":2}' },
      { id: 'c1', name: 'pay', arguments: '{"b":2, "a":1}' },
    ],
    [['pay', { a: 1, b: 2 }]],
  ],
  [
    'other arguments',
    [
      { id: 'c1', name: 'pay', arguments: '{"a":1}' },
      { id: 'c1', name: 'pay', arguments: '{"a":2}' },
    ],
    [
      ['pay', { a: 1 }],
      ['pay', { a: 2 }],
    ],
  ],
  [
    'another tool',
    [
      { id: 'c1', name: 'pay', arguments: '{"a":1}' },
      { id: 'c1', name: 'delete', arguments: '{"a":1}' },
    ],
    [
      ['pay', { a: 1 }],
      ['delete', { a: 1 }],
    ],
  ],
  [
    'no arguments the second time',
    [
      { id: 'c1', name: 'pay', arguments: '{"a":1}' },
      { id: 'c1', name: 'pay', arguments: '{}' },
    ],
    [],
  ],
  [
    'a third call of its own',
    [
      { id: 'c1', name: 'pay', arguments: '{"a":1}' },
      { id: 'c1', name: 'pay', arguments: '{"a":2}' },
      { id: 'c2', name: 'delete', arguments: '{"a":3}' },
    ],
    [
      ['pay', { a: 1 }],
      ['pay', { a: 2 }],
      ['delete', { a: 3 }],
    ],
  ],
  [
    'three times, the last one different',
    [
      { id: 'c1', name: 'pay', arguments: '{"a":1}' },
      { id: 'c1', name: 'pay', arguments: '{"a":1}' },
      { id: 'c1', name: 'pay', arguments: '{"a":2}' },
    ],
    [
      ['pay', { a: 1 }],
      ['pay', { a: 2 }],
    ],
  ],
  [
    'ids of their own',
    [
      { id: 'c1', name: 'pay', arguments: '{"a":1}' },
      { id: 'c2', name: 'pay', arguments: '{"a":1}' },
    ],
    [
      ['pay', { a: 1 }],
      ['pay', { a: 1 }],
    ],
  ],
];

/** The package of the AI SDK for chat completions gives a call that comes again another id. */
const models = [
  ...wires.map((wire) => ['a package of Millrace', native[wire], wire] as const),
  ...wires.slice(1).map((wire) => ['the AI SDK', throughAiSdk[wire], wire] as const),
];

describe.each(models)('X7: one id is one call, with %s', (_, make, wire) => {
  it.each(pairs)(`X7: over ${wire}: %s`, async (_name, toolCalls = [], expected) => {
    const bytes = bytesOf(streamOf(wire, { text: 'Now.', toolCalls }).join(''));
    const { runs, error, refusals } = await play(wire, make, bytes);
    expect({ runs, error }).toEqual({ runs: expected, error: undefined });
    for (const refusal of refusals) expect(refusal).toMatch(/the same id/);
    const ids = new Set(toolCalls.map(({ id }) => id));
    expect(runs.length + refusals.length).toBeGreaterThanOrEqual(ids.size);
  });
});
