import { describe, expect, it } from '@jest/globals';
import { readHistory } from '../seams/input.js';
import { type Message, textBlock } from './message.js';
import { paired, unpaired } from './pairing.js';

const calling = (id: string): Message => ({
  id: `m/${id}`,
  role: 'assistant',
  content: [{ type: 'tool_call', id, name: 'look', input: {} }],
});
const result = (id: string): Message => ({
  id: `r/${id}`,
  role: 'tool',
  content: [{ type: 'tool_result', toolCallId: id, content: [textBlock(id)], isError: false }],
});
const ids = (count: number) => Array.from({ length: count }, (_, index) => String(index));

/** How often the elements of the lists are read while `work` runs. */
const reads = (lists: readonly (readonly Message[])[], work: (lists: never[]) => unknown) => {
  let count = 0;
  const counted = lists.map(
    (list) =>
      new Proxy(list, {
        get: (target, key, receiver): unknown => {
          if (typeof key === 'string' && /^\d+$/.test(key)) count += 1;
          return Reflect.get(target, key, receiver);
        },
      }) as never,
  );
  work(counted);
  return count;
};

describe('tool calls and their results', () => {
  it('I1: each call gets one result: the first of its id, or that there is not one', () => {
    const fixed = paired([
      result('lost'),
      calling('a'),
      result('b'),
      result('a'),
      { ...result('a'), id: 'r/second' },
      calling('c'),
    ]);
    expect(unpaired(fixed)).toBeUndefined();
    expect(fixed.map(({ id }) => id)).toEqual(['m/a', 'r/b', 'm/c', 'm/c/results']);
    expect(fixed[1]?.content).toMatchObject([{ toolCallId: 'a', isError: false }]);
    expect(fixed[3]?.content).toMatchObject([{ toolCallId: 'c', isError: true }]);
  });

  it('X6: a list that is four times as long is read four times as often', () => {
    const pairs = (count: number) => [
      ...ids(count).flatMap((id) => [calling(id), result(id)]),
      calling('open'),
    ];
    const row = (count: number) => [calling('a'), ...ids(count).map(result)];
    for (const list of [pairs, row]) {
      const once = reads([list(500)], ([messages]) => paired(messages ?? []));
      const more = reads([list(2_000)], ([messages]) => paired(messages ?? []));
      expect(more / once).toBeLessThan(4.5);
    }
  });

  it('X6: results in a row are joined', () => {
    const call = (id: string) => ({ type: 'tool_call', id, name: 'look', input: {} }) as const;
    const history = (count: number): readonly Message[] => [
      { id: 'm', role: 'assistant', content: ids(count).map(call) },
      ...ids(count).map(result),
    ];
    const read = readHistory(history(3_000), { agent: ['a'] });
    expect(read).toHaveLength(2);
    expect(read[1]?.content).toHaveLength(3_000);
    expect(unpaired(read)).toBeUndefined();
  });
});
