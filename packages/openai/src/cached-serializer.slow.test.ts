import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, jest } from '@jest/globals';
import type { Message } from 'millrace';
import { assistant, frozen, results, use, user } from './conversation.test-support.js';
import { cachedSerializer, type Serializer, type WireNames } from '@millrace/wire';

const asIs: WireNames = { toolName: (name) => name, toolId: (id) => id };

/** Writes messages as nothing but their texts, names and ids. */
const written: Serializer<readonly string[]> = (messages, { toolName, toolId }) =>
  messages.map(({ content }) =>
    JSON.stringify(
      content.map((block) => {
        if (block.type === 'tool_call')
          return [toolId(block.id), toolName(block.name), block.input];
        return block.type === 'tool_result' ? toolId(block.toolCallId) : block;
      }),
    ),
  );

const lengthOf = (texts: readonly string[]): number => texts.join('').length;

/** What writes, and how often it has really done so. */
const counting = () => {
  const write = jest.fn(written);
  return { write, once: cachedSerializer(write, lengthOf) };
};

const calling: Message = frozen(assistant('I look.', use('c1', 'weather'), use('c2', 'search')));

describe('writeOnce', () => {
  it('writes messages once that come again in a row', () => {
    const { write, once } = counting();
    const [first, last] = [frozen(user('Hi')), frozen(assistant('Hello.'))];
    const rows = [[first, last], [last], [last, last], [user('Hi'), last], [last, first], []];
    for (const row of rows) expect(once(row, asIs)).toEqual(written(row, asIs));
    expect(write).toHaveBeenCalledTimes(6);
    expect(once([last, first], asIs)).toBe(once([last, first], asIs));
  });

  it('writes a message once', () => {
    const { write, once } = counting();
    expect(once([calling], asIs)).toBe(once([calling], asIs));
    expect(once([calling], asIs)).toEqual(written([calling], asIs));
    expect(write).toHaveBeenCalledTimes(1);
  });

  it.each<[string, WireNames]>([
    ['name', { ...asIs, toolName: (name) => `other_${name}` }],
    ['name of one tool', { ...asIs, toolName: (name) => (name === 'search' ? 's' : name) }],
    ['id', { ...asIs, toolId: (id) => id.replace('call', 'c') }],
  ])('X7: writes it again where another %s is called for', (_what, renaming) => {
    const { once } = counting();
    const long: Message = frozen(assistant(use('call 1', 'weather'), use('call 2', 'search')));
    const before: WireNames = { ...asIs, toolId: (id) => id.replace(' ', '_') };
    for (const naming of [before, renaming, before, renaming, before]) {
      expect(once([long], naming)).toEqual(written([long], naming));
    }
  });

  it('X7: asks for every name each time, so that each is known when it comes back', () => {
    const { once } = counting();
    const toolName = jest.fn(asIs.toolName);
    once([calling], asIs);
    once([calling], { ...asIs, toolName });
    expect(toolName.mock.calls.flat()).toEqual(['weather', 'search']);
  });

  /** Freezes all of a message but one part of it. */
  const frozenBut = (message: Message, path: readonly (string | number)[]): Message => {
    const open: unknown = path.reduce<unknown>(
      (part, key) => Reflect.get(Object(part), key),
      message,
    );
    const freeze = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return;
      Object.values(value).forEach(freeze);
      if (value !== open) Object.freeze(value);
    };
    freeze(message);
    return message;
  };

  it.each<[string, Message, readonly (string | number)[]]>([
    ['it', user('Hi'), []],
    ['its content', user('Hi'), ['content']],
    ['a block', user('Hi', 'there'), ['content', 1]],
    [
      'an input',
      assistant(use('c1', 'weather', { at: { city: 'Oslo' } })),
      ['content', 0, 'input', 'at'],
    ],
    ['a result', results(['c1', 'rain']), ['content', 0]],
    ['what a tool said', results(['c1', 'rain']), ['content', 0, 'content']],
  ])('keeps nothing of a message while %s can change', (_what, message, path) => {
    const { write, once } = counting();
    frozenBut(message, path);
    once([message], asIs);
    once([message], asIs);
    expect(write).toHaveBeenCalledTimes(2);
    frozen(message);
    once([message], asIs);
    once([message], asIs);
    expect(write).toHaveBeenCalledTimes(3);
  });

  it('keeps a result whose details can change, because they are not sent', () => {
    const { write, once } = counting();
    const result = {
      type: 'tool_result',
      toolCallId: 'c1',
      content: [],
      isError: false,
      details: {},
    } as const;
    const message = frozenBut({ id: 't', role: 'tool', content: [result] }, [
      'content',
      0,
      'details',
    ]);
    once([message], asIs);
    once([message], asIs);
    expect(write).toHaveBeenCalledTimes(1);
  });

  it('X6: does not hold a picture or a document twice', () => {
    const { write, once } = counting();
    const long = frozen(user('x'.repeat(100_000)));
    expect(once([long], asIs)).toEqual(once([long], asIs));
    expect(write).toHaveBeenCalledTimes(2);
  });

  it('keeps nothing if a message cannot be written', () => {
    const once = cachedSerializer(() => {
      throw new Error('no such block');
    }, lengthOf);
    expect(() => once([calling], asIs)).toThrow('no such block');
    expect(() => once([calling], asIs)).toThrow('no such block');
  });

  it('X6: keeps nothing of messages that are gone', async () => {
    setFlagsFromString('--expose-gc');
    const once = cachedSerializer(written, lengthOf);
    const gone = ((): WeakRef<Message> => {
      const message = frozen(assistant('I look.', use('c1')));
      expect(once([message], asIs)).toBe(once([message], asIs));
      return new WeakRef(message);
    })();
    // What is looked at stays until the end of the task.
    await new Promise(setImmediate);
    runInNewContext('gc()');
    expect(gone.deref()).toBeUndefined();
    expect(once([calling], asIs)).toHaveLength(1);
  });
});
