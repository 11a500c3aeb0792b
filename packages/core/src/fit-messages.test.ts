import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { concat, of, throwError } from 'rxjs';
import {
  createAgent,
  estimateTokens,
  type Message,
  MillraceError,
  only,
  textBlock,
  textOf,
  tool,
} from './index.js';
import { fitMessages, tokensOfAll } from './fit-messages.js';
import { unpaired } from './run.js';
import { scriptedModel, text, toolUse } from './testing/index.js';

const user = (id: string, said: string): Message => ({
  id,
  role: 'user',
  content: [textBlock(said)],
});
const assistant = (id: string, said: string): Message => ({
  id,
  role: 'assistant',
  content: [textBlock(said)],
});
const used = (id: string, output: string): readonly Message[] => [
  { id, role: 'assistant', content: [{ type: 'tool_use', id, name: 'look', input: {} }] },
  {
    id: `${id}/results`,
    role: 'tool',
    content: [{ type: 'tool_result', toolUseId: id, content: [textBlock(output)], isError: false }],
  },
];
const long = 'word '.repeat(80);
const isTask = ({ id }: Message): boolean => id.startsWith('task');

describe('estimateTokens', () => {
  it.each([
    ['', 0],
    ['a', 1],
    ['hello world', 2],
    ['안녕하세요', 3],
    ['👍🏽', 2],
    ['привет', 2],
    ['日本語です', 3],
    ['☀️', 2],
  ])('C3: %j is %i', (said, tokens) => {
    expect(estimateTokens(said)).toBe(tokens);
  });
});

describe('fitMessages', () => {
  const history = [
    user('h1', long),
    assistant('h2', long),
    user('h3', long),
    assistant('h4', 'ok'),
  ];
  const task = user('task', 'And now?');
  const tools = [...used('t1', long), ...used('t2', long), ...used('t3', 'short')];
  const all = [...history, task, ...tools];
  const idsOf = (budget: number): readonly string[] =>
    fitMessages(all, budget, isTask).messages.map(({ id }) => id);

  it('C2, C11: leaves out the oldest history first, then the oldest tools behind the task', () => {
    expect(idsOf(1000)).toEqual(all.map(({ id }) => id));
    expect(idsOf(350)[0]).toBe('h3');
    expect(idsOf(250)[0]).toBe('task');
    expect(idsOf(150)).toEqual(['task', 't2', 't2/results', 't3', 't3/results']);
    expect(idsOf(0)).toEqual(['task', 't3', 't3/results']);
  });

  it('C2: keeps the newest tools also when something was said behind them', () => {
    const { messages } = fitMessages([...all, user('feedback', 'Answer now.')], 0, isTask);
    expect(messages.map(({ id }) => id)).toEqual(['task', 't3', 't3/results', 'feedback']);
    const untooled = [...history, task, assistant('a', long), user('f', 'Better.')];
    expect(fitMessages(untooled, 0, isTask).messages.map(({ id }) => id)).toEqual([
      'task',
      'a',
      'f',
    ]);
  });

  it('C2: two messages of a task stay, the marker stands in the first, and media have a weight', () => {
    const image: Message = {
      id: 'h0',
      role: 'user',
      content: [{ type: 'image', source: { kind: 'url', url: 'https://example.com/a.png' } }],
    };
    const { messages, omittedTokens } = fitMessages(
      [image, task, user('task2', 'Well?')],
      0,
      isTask,
    );
    expect(messages.map(({ content }) => content.length)).toEqual([2, 1]);
    expect(omittedTokens).toBe(1000);
  });

  it('I15: says what is left out, in the task, and changes nothing else', () => {
    const { messages, omitted, omittedTokens } = fitMessages(all, 0, isTask);
    expect(omitted).toBe(8);
    expect(textOf(messages[0] ?? { content: [] })).toBe(
      `[8 earlier messages, about ${omittedTokens} tokens, are left out here.]\n\nAnd now?`,
    );
    expect(messages.slice(1)).toEqual(used('t3', 'short'));
    expect(fitMessages(all, 1000, isTask)).toEqual({ messages: all, omitted: 0, omittedTokens: 0 });
    expect(fitMessages(history, 0, isTask).messages).toBe(history);
  });

  it('C2: pairs stay whole and the task stays, whatever the budget', () => {
    const part = fc.array(fc.tuple(fc.boolean(), fc.nat(200)), { maxLength: 12 });
    const build = (parts: readonly (readonly [boolean, number])[], name: string) =>
      parts.flatMap(([isTool, size], index) =>
        isTool
          ? used(`${name}${index}`, 'x'.repeat(size))
          : [user(`${name}${index}`, 'y'.repeat(size)), assistant(`${name}${index}a`, 'z')],
      );
    fc.assert(
      fc.property(part, part, fc.nat(500), (before, after, budget) => {
        const tail = build(
          after.map(([, size]) => [true, size] as const),
          'b',
        );
        const messages = [...build(before, 'a'), task, ...tail];
        const fitted = fitMessages(messages, budget, isTask);
        expect(unpaired(fitted.messages)).toBeUndefined();
        expect(fitted.messages.some(isTask)).toBe(true);
        const order = fitted.messages.map(({ id }) => messages.findIndex((it) => it.id === id));
        expect(order).toEqual([...order].sort((a, b) => a - b));
        if (fitted.omitted === 0) return;
        expect(tokensOfAll(fitted.messages)).toBeLessThan(tokensOfAll(messages) + 20);
      }),
    );
  });
});

describe('a request that the provider finds too long', () => {
  const over = new MillraceError('contextTooLong', 'Too long.');
  const past = [user('', long), assistant('', long), user('', 'And now?')];

  it('C11: is sent once more, shorter, with a warning', async () => {
    const model = scriptedModel(
      throwError(() => over),
      [text('Well.')],
    );
    const agent = createAgent({ model });
    const warnings: string[] = [];
    agent.events$.pipe(only('warning')).subscribe(({ message }) => warnings.push(message));
    const session = agent.session('s');
    await session.memory
      .append$([user('h1', long), assistant('h2', long)])
      .forEach(() => undefined);
    expect(textOf(await session.call('And now?'))).toBe('Well.');
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([3, 1]);
    expect(warnings).toEqual([
      "The model 'scripted' found the request too long: it is sent again without 2 earlier messages (about 200 tokens).",
    ]);
  });

  it('C11: ends with contextTooLong when that is too long as well, or there is nothing to leave out', async () => {
    const twice = scriptedModel(
      throwError(() => over),
      throwError(() => over),
    );
    const session = createAgent({ model: twice }).session('s');
    await session.memory
      .append$([user('h1', long), assistant('h2', long)])
      .forEach(() => undefined);
    await expect(session.call('And now?')).rejects.toBe(over);
    twice.verify();
    const once = scriptedModel(throwError(() => over));
    await expect(createAgent({ model: once }).call(past)).rejects.toBe(over);
  });

  it('C11: is not sent again when something was shown', async () => {
    const model = scriptedModel(
      concat(
        of(text('Half')),
        throwError(() => over),
      ),
    );
    const look = tool({ name: 'look', description: 'Looks.', run: () => long });
    const session = createAgent({ model, tools: [look] }).session('s');
    await session.memory
      .append$([user('h1', long), assistant('h2', long)])
      .forEach(() => undefined);
    await expect(session.call('?')).rejects.toMatchObject({
      code: 'contextTooLong',
      partial: 'Half',
    });
  });

  it('C11: leaves out old tools of the turn too', async () => {
    const model = scriptedModel(
      [toolUse('look')],
      [toolUse('look')],
      throwError(() => over),
      [text('Done.')],
    );
    const look = tool({ name: 'look', description: 'Looks.', run: () => long });
    await createAgent({ model, tools: [look] }).call('Look around.');
    expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 5, 3]);
  });
});

describe('a stream that breaks off', () => {
  it('X1: keeps what had come in the error', async () => {
    const reset = new MillraceError('connection', 'Reset.', { status: 200, requestId: 'r1' });
    const model = scriptedModel(
      concat(
        of(text('Half a '), text('sen')),
        throwError(() => reset),
      ),
    );
    await expect(createAgent({ model }).call('?')).rejects.toMatchObject({
      code: 'connection',
      message: 'Reset.',
      partial: 'Half a sen',
      retryable: true,
      status: 200,
      requestId: 'r1',
    });
  });
});
