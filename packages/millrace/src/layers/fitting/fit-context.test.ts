import { describe, expect, it } from '@jest/globals';
import { map, throwError } from 'rxjs';
import {
  createAgent,
  type Layer,
  type Message,
  MillraceError,
  type ModelChunk,
  on,
  only,
  output,
  suspend,
  textBlock,
  textOf,
  tool,
  toolResults,
} from '../../index.js';
import { jsonSchema } from '../../schema/index.js';
import { scriptedModel, text, toolCall } from '../../testing/index.js';
import { assistant, idsOf, remember, user } from './conversation.test-support.js';
import {
  countRequest,
  createTokenCounter,
  plainCounter,
  type TokenCounter,
} from '../../models/count-request.js';
import { shortenOnOverflow } from '../../models/fit-messages.js';
import { fitContext } from './index.js';
import { sessions } from '../sessions/index.js';

const long = 'word '.repeat(80);
const says = (words: string): readonly ModelChunk[] => [text(words)];
const past = Array.from({ length: 20 }, (_, index) => [
  user(`h${index}`, long),
  assistant(`a${index}`, long),
]).flat();
const look = tool({ name: 'look', description: 'Looks.', run: () => long });
const usage = (inputTokens: number, cacheReadTokens = 0): ModelChunk => ({
  type: 'usage',
  usage: { inputTokens, cacheReadTokens, outputTokens: 10 },
});
const byLength: TokenCounter = { count: (it) => it.length };

describe('fitContext', () => {
  it('C2, I15: makes each request fit, with a marker; memory keeps all', async () => {
    const model = scriptedModel(says('Well.'));
    const agent = createAgent({
      model,
      instructions: long,
      use: [fitContext({ contextWindow: 2_000, reserve: 500 })],
    });
    const session = sessions(agent).open('s');
    await remember(session, past);
    await session.call('And now?');
    const [request = { messages: [] }] = model.requests;
    expect(countRequest(plainCounter, request)).toBeLessThanOrEqual(1_500);
    expect(request.messages.length).toBeGreaterThan(8);
    expect(textOf(request.messages.at(-1) ?? { content: [] })).toMatch(
      /^\[\d+ earlier messages, about \d+ tokens, are left out here\.\]\n\nAnd now\?$/,
    );
    await session.memory.load$().forEach((messages) => {
      expect(messages).toHaveLength(42);
      expect(messages.map(textOf)).toContain('And now?');
    });
  });

  it('C2: keeps free what the answer may take, if that is more than the reserve', async () => {
    const sizes = await Promise.all(
      [undefined, 200, 1_000].map(async (maxTokens) => {
        const model = scriptedModel(says('Well.'));
        const interceptors = [fitContext({ contextWindow: 3_000, reserve: 500 })];
        const session = sessions(createAgent({ model, use: interceptors })).open('s');
        await remember(session, past);
        await session.call('?', maxTokens === undefined ? {} : { request: { maxTokens } });
        return model.requests[0]?.messages.length ?? 0;
      }),
    );
    expect(sizes[0]).toBe(sizes[1]);
    expect(sizes[2]).toBeLessThan(sizes[0] ?? 0);
  });

  it('C2: counts the tools, the system prompt and the schema of the answer', async () => {
    const lengthWith = async (more: object, ...layers: readonly Layer[]): Promise<number> => {
      const model = scriptedModel(says('{"a":"b"}'));
      const interceptors = [fitContext({ contextWindow: 3_000, reserve: 500 })];
      const use = [...interceptors, ...layers];
      const session = sessions(createAgent({ model, use, ...more })).open('s');
      await remember(session, past);
      await session.call('?');
      return model.requests[0]?.messages.length ?? 0;
    };
    const bare = await lengthWith({});
    const wordy = tool({ name: 'wordy', description: long.repeat(10), run: () => '' });
    const form = output(
      jsonSchema({
        type: 'object',
        description: long.repeat(10),
        properties: { a: { type: 'string' } },
      }),
    );
    expect(await lengthWith({ tools: [wordy] })).toBeLessThan(bare);
    expect(await lengthWith({ instructions: long.repeat(10) })).toBeLessThan(bare);
    expect(await lengthWith({}, form)).toBeLessThan(bare);
  });

  it('C2: ends with contextTooLong that says how much is over, and asks no model', async () => {
    const model = scriptedModel();
    const interceptors = [fitContext({ contextWindow: 1_000, reserve: 100, counter: byLength })];
    const error: unknown = await createAgent({ model, use: interceptors })
      .call('x'.repeat(1_000))
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'contextTooLong', retryable: false, over: 107 });
    // 4 of the message and 3 of the answer are over too.
    expect(String(error)).toContain('about 107 tokens too long for a context window of 1000');
    expect(model.requests).toHaveLength(0);
  });

  it('C2: fits what other interceptors have added', async () => {
    const model = scriptedModel(says('Well.'));
    const recalled = on(
      'preReasoning',
      map((event) => ({ ...event, messages: [...past, ...event.messages] })),
      { priority: 1_000 },
    );
    const interceptors = [fitContext({ contextWindow: 2_000, reserve: 500 }), recalled];
    await createAgent({ model, use: interceptors }).call('And now?');
    expect(model.requests[0]?.messages.length).toBeLessThan(20);
  });

  it('C2: leaves out old tools of a long call, and of its closing request', async () => {
    const model = scriptedModel(
      ...Array.from({ length: 12 }, () => [toolCall('look')]),
      says('Done.'),
    );
    const interceptors = [fitContext({ contextWindow: 1_200, reserve: 200 })];
    const agent = createAgent({ model, tools: [look], use: interceptors });
    const reply = await agent.call('Look around.', { limits: { maxIterations: 12 } });
    expect(textOf(reply)).toBe('Done.');
    const sizes = model.requests.map((request) => countRequest(plainCounter, request));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
    const last = model.requests.at(-1)?.messages ?? [];
    expect(textOf(last[0] ?? { content: [] })).toContain('Look around.');
    expect(textOf(last.at(-1) ?? { content: [] })).toContain(
      'The maximum number of iterations is reached.',
    );
    expect(last.at(-2)?.role).toBe('tool');
  });

  it('C2, T13: a call that brings results continues with what was asked before', async () => {
    const model = scriptedModel([toolCall('ask', {}, 'u1')], says(''), says('Done.'));
    const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend() });
    const interceptors = [fitContext({ contextWindow: 1_000, reserve: 500 })];
    const session = sessions(createAgent({ model, tools: [ask], use: interceptors })).open('s');
    await remember(session, past);
    await session.call('Ask them.');
    await session.call(toolResults({ u1: long }));
    for (const { messages } of model.requests.slice(1)) {
      const asked = messages.findIndex((message) => textOf(message).includes('Ask them.'));
      expect(messages.slice(asked, asked + 3).map(({ role }) => role)).toEqual([
        'user',
        'assistant',
        'tool',
      ]);
      expect(textOf(messages[asked] ?? { content: [] })).toContain('are left out here');
    }
    expect(textOf(model.requests.at(-1)?.messages.at(-1) ?? { content: [] })).toContain('empty');
  });

  it('C11: what the provider still finds too long is cut once more, with one marker', async () => {
    const over = new MillraceError('contextTooLong', 'Too long.');
    const model = scriptedModel(
      throwError(() => over),
      says('Well.'),
    );
    const interceptors = [fitContext({ contextWindow: 2_000, reserve: 500 })];
    const agent = createAgent({ model: shortenOnOverflow(model), use: interceptors });
    const warnings: string[] = [];
    agent.events$.pipe(only('warning')).subscribe(({ message }) => warnings.push(message));
    const session = sessions(agent).open('s');
    await remember(session, past);
    await session.call('And now?');
    const [first, second] = model.requests.map(({ messages }) => messages);
    expect(second?.length).toBeLessThan((first?.length ?? 0) * 0.6);
    const said = textOf(second?.at(-1) ?? { content: [] });
    const left = 41 - (second?.length ?? 0);
    expect(said).toMatch(new RegExp(`^\\[${left} earlier[^\\]]*\\]\\n\\nAnd now\\?$`));
    expect(warnings).toHaveLength(1);
  });

  it('C2: refuses options that cannot be', () => {
    const given = (options: object) => () => fitContext(options as never);
    expect(given({})).toThrow("fitContext() needs 'contextWindow'");
    expect(given({ contextWindow: 4_096 })).toThrow("'reserve' must be smaller");
    expect(given({ contextWindow: 8_000, counter: {} })).toThrow(
      "'counter' must be an object with count(text)",
    );
    expect(given({ contextWindow: 8_000, window: 1 })).toThrow("has no option 'window'");
    expect(given({ contextWindow: 0.5 })).toThrow('a whole number of at least 1');
    const broken = [fitContext({ contextWindow: 8_000, counter: { count: () => NaN } })];
    const call = createAgent({ model: scriptedModel(says('')), use: broken }).call('?');
    return expect(call).rejects.toThrow('A token counter returned NaN');
  });
});

describe('a counter that calibrates itself', () => {
  it('C3: learns from what providers report, cache reads included, for each model alone', async () => {
    const counter = createTokenCounter();
    const messages: readonly Message[] = [user('', long.repeat(20))];
    const estimated = countRequest(counter, { messages });
    const dense = scriptedModel(
      ...[1, 2, 3].map(() => [usage(estimated * 0.5, estimated), text('Well.')]),
    );
    const interceptors = [fitContext({ contextWindow: 9_000, counter })];
    const agent = createAgent({ model: { ...dense, name: 'dense' }, use: interceptors });
    for (const factor of [1, 1, 1.25]) {
      expect(counter.factor?.('dense')).toBeCloseTo(factor);
      await agent.call(messages);
    }
    expect(counter.factor?.('dense')).toBeCloseTo(1.5);
    expect(counter.factor?.('other')).toBe(1);
    expect(countRequest(counter, { messages }, 'dense')).toBeCloseTo(estimated * 1.5, -1);
  });

  it('C3: what it has learned makes the next requests fit', async () => {
    const model = scriptedModel(
      ...Array.from({ length: 5 }, () => (request: { messages: readonly Message[] }) => [
        usage(Math.round(countRequest(plainCounter, request) * 1.5)),
        text('Well.'),
      ]),
    );
    const interceptors = [fitContext({ contextWindow: 3_000, reserve: 500 })];
    const agent = createAgent({ model, use: interceptors });
    for (const id of ['1', '2', '3', '4', '5']) {
      const session = sessions(agent).open(id);
      await remember(session, past);
      await session.call('?');
    }
    const sizes = model.requests.map((request) => countRequest(plainCounter, request) * 1.5);
    expect(sizes[0]).toBeGreaterThan(2_500);
    expect(sizes[4]).toBeLessThanOrEqual(2_500);
  });

  it('C3, C11: learns of the request that was sent in the end', async () => {
    const counter = createTokenCounter();
    const over = new MillraceError('contextTooLong', 'Too long.');
    const model = scriptedModel(
      ...Array.from({ length: 3 }, () => [
        throwError(() => over),
        (request: { messages: readonly Message[] }) => [
          usage(Math.round(countRequest(plainCounter, request) * 1.5)),
          text('Well.'),
        ],
      ]).flat(),
    );
    const interceptors = [fitContext({ contextWindow: 8_000, counter })];
    const agent = createAgent({ model: shortenOnOverflow(model), use: interceptors });
    for (const id of ['1', '2', '3']) {
      const session = sessions(agent).open(id);
      await remember(session, past);
      await session.call('?');
    }
    expect(counter.factor?.('scripted')).toBeCloseTo(1.5, 1);
  });

  it('C3: an attempt that was void counts for nothing, and neither does a request of pictures', async () => {
    const counter = createTokenCounter();
    const interceptors = [fitContext({ contextWindow: 90_000, counter })];
    const again: ModelChunk = { type: 'restart', why: 'It broke off.' };
    const answers = [1, 2, 3].map(() => [usage(9_999), again, text('Well.')]);
    const agent = createAgent({ model: scriptedModel(...answers), use: interceptors });
    for (const _ of answers) await agent.call(long.repeat(20));
    expect(counter.factor?.('scripted')).toBe(1);
    const source = { kind: 'url', url: 'https://example.com/a.png' } as const;
    const seeing = [1, 2, 3].map(() => [usage(9_999), text('A cat.')]);
    const other = createAgent({ model: scriptedModel(...seeing), use: interceptors });
    for (const _ of seeing)
      await other.call([textBlock(long.repeat(5)), { type: 'image', source }]);
    expect(counter.factor?.('scripted')).toBe(1);
  });

  it('C3: text that is taken back in the same request voids no usage', async () => {
    const counter = createTokenCounter();
    const taken: ModelChunk = { type: 'restart', why: 'A thought.', isSameRequest: true };
    const answers = [1, 2, 3].map(() => [usage(9_999), taken, text('Well.')]);
    const use = [fitContext({ contextWindow: 90_000, counter })];
    const agent = createAgent({ model: scriptedModel(...answers), use });
    for (const _ of answers) await agent.call(long.repeat(20));
    expect(counter.factor?.('scripted')).not.toBe(1);
  });

  it('C3: an exact counter is taken at its word', async () => {
    const model = scriptedModel(says('Well.'));
    const interceptors = [fitContext({ contextWindow: 3_000, reserve: 500, counter: byLength })];
    const session = sessions(createAgent({ model, use: interceptors })).open('s');
    await remember(session, past);
    await session.call('?');
    expect(idsOf(model.requests[0]?.messages ?? [])).toHaveLength(5);
  });
});
