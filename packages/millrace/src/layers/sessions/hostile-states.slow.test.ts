import { describe, expect, it } from '@jest/globals';
import { exceedsSize } from './read-state.js';
import { readState } from './read-state.js';
import { sampleAgent } from './sample-sessions.test-support.js';
import { sessions } from './index.js';

const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
const stateOf = (messages: unknown, more: object = {}): unknown => ({
  version: 1,
  messages,
  groups: {},
  approvals: [],
  usage,
  interrupted: false,
  ...more,
});
const asking = (input: unknown): unknown => [
  {
    id: 'a',
    role: 'assistant',
    content: [{ type: 'tool_call', id: 'u', name: 't', input }],
  },
];
const nested = (levels: number, within: (inner: unknown) => unknown): unknown =>
  Array.from({ length: levels }).reduce<unknown>((inner) => within(inner), 1);
const many = (count: number, value: unknown): unknown => Array.from({ length: count }, () => value);
const blocks = many(1_000, { type: 'text', text: 'x' });
const message = { id: 'm', role: 'user', content: blocks };

describe('S4, X15: a state of hostile size', () => {
  it.each([
    ['many messages', stateOf(many(1_000_000, message)), 'more than 2000000 values'],
    ['a list that says it is long', stateOf(Object.assign([], { length: 4e9 })), 'more than'],
    ['many blocks', stateOf(many(10_000, message)), 'more than 2000000 values'],
    ['many groups', stateOf([], { groups: many(3_000_000, true) }), 'more than 2000000 values'],
    ['deep input', stateOf(asking({ a: nested(100_000, (it) => [it]) })), 'more than 100 levels'],
    [
      'what is held twice at each of its levels',
      stateOf(asking({ a: nested(90, (inner) => [inner, inner]) })),
      'more than 2000000 values',
    ],
    [
      'many fields',
      { ...(stateOf([]) as object), ...Object.fromEntries([['k'.repeat(1e6), 1]]) },
      'is unknown',
    ],
  ])('is refused before it costs much: %s', (_what, state, why) => {
    expect(() => readState(state)).toThrow(why);
  });

  it('is taken if it is one long text, or as many messages as a session may have', async () => {
    const session = sessions(sampleAgent()).open('s');
    const text = 'x'.repeat(50_000_000);
    const long = [{ id: 'm', role: 'user', content: [{ type: 'text', text }] }];
    await session.loadState(stateOf(long));
    expect((await session.saveState()).messages[0]?.content[0]).toEqual({ type: 'text', text });
    const all = Array.from({ length: 20_000 }, (_, index) => ({
      id: `m${index}`,
      role: 'user',
      content: [{ type: 'text', text: 'x' }],
    }));
    await session.loadState(stateOf(all));
    expect((await session.saveState()).messages).toHaveLength(20_000);
  });

  it('is measured as a copy of it would be, and no further than it must', () => {
    expect(exceedsSize({ a: [1, 2], b: { c: 3 } }, 5)).toBe(false);
    expect(exceedsSize({ a: [1, 2], b: { c: 3 } }, 4)).toBe(true);
    const shared = [1, 2];
    expect(exceedsSize([shared, shared], 6)).toBe(false);
    expect(exceedsSize([shared, shared], 5)).toBe(true);
    const round: unknown[] = [];
    round.push(round);
    expect(exceedsSize(round, 1_000)).toBe(true);
    expect(exceedsSize('text', 0)).toBe(false);
  });
});
