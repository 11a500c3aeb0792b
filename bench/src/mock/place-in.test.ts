import { describe, expect, it } from '@jest/globals';
import { weatherOf } from '../lookup.js';
import { placeIn } from './place-in.js';
import { Refusal } from './refusal.js';
import type { Said } from './said.js';
import type { Script } from './script.js';
import { toolCallsOf } from './tool-call.js';

const script: Script = { turns: 2, tools: 3, deltas: 5, gapMs: 0, isWhole: false };

const asked: Said = { role: 'user' };
const answered: Said = { role: 'assistant', uses: [] };
const asks = (turn: number, count = script.tools): Said => ({
  role: 'assistant',
  uses: toolCallsOf(turn, count),
});
const results = (turn: number, count = script.tools): Said & { readonly role: 'tool' } => ({
  role: 'tool',
  results: toolCallsOf(turn, count).map(({ id }, day) => ({ id, text: weatherOf('Oslo', day) })),
});
const oneByOne = (turn: number): readonly Said[] =>
  results(turn).results.map((result) => ({ role: 'tool', results: [result] }));

describe('the state of a conversation', () => {
  it.each<[string, number, number, readonly Said[]]>([
    ['a question', 0, 0, [asked]],
    ['a turn', 1, 1, [asked, asks(0), results(0)]],
    ['results one by one', 1, 1, [asked, asks(0), ...oneByOne(0)]],
    ['results in another order', 1, 1, [asked, asks(0), ...oneByOne(0).toReversed()]],
    ['all turns', 2, 2, [asked, asks(0), results(0), asks(1), results(1)]],
    ['a question behind earlier ones', 0, 2, [asked, asks(0), results(0), answered, asked]],
    ['a turn behind earlier ones', 1, 2, [asked, answered, asked, asks(1), results(1)]],
  ])('%s', (_, turn, message, said) => {
    expect(placeIn(said, script)).toEqual({ turn, message });
  });

  it('takes arguments that are written otherwise, and text around a result', () => {
    const uses = toolCallsOf(0, 3).map((use) => ({
      ...use,
      json: JSON.stringify(JSON.parse(use.json), undefined, 2),
    }));
    const quoted = results(0).results.map(({ id, text }) => ({ id, text: `"${text}"` }));
    const said: readonly Said[] = [
      asked,
      { role: 'assistant', uses },
      { role: 'tool', results: quoted },
    ];
    expect(placeIn(said, script).turn).toBe(1);
  });
});

describe('what is refused', () => {
  const [first, ...others] = results(0).results;
  const changed = (text: string): Said => ({
    role: 'tool',
    results: [...others, { id: first?.id ?? '', text }],
  });
  it.each<[string, RegExp, readonly Said[]]>([
    ['no question', /no user message/, [asks(0), results(0)]],
    ['an answer at the end', /model’s own/, [asked, answered]],
    [
      'a missing result',
      /no result: call_0_0/,
      [asked, asks(0), { role: 'tool', results: others }],
    ],
    ['no results', /no result: call_0_0, call_0_1, call_0_2/, [asked, asks(0)]],
    ['a message between', /no result/, [asked, asks(0), asked, results(0)]],
    ['a result twice', /'call_0_1' answers no/, [asked, asks(0), results(0), changed('12')]],
    ['a result of nothing', /'call_1_0' answers no/, [asked, asks(0), results(0), results(1)]],
    ['another result', /not what the tool says/, [asked, asks(0), changed('Cold.')]],
    ['a tool use less', /not the 3/, [asked, asks(0, 2), results(0, 2)]],
    ['a turn again', /message 1/, [asked, asks(0), results(0), asks(0), results(0)]],
    [
      'a turn more',
      /3 turns have asked/,
      [asked, asks(0), results(0), asks(1), results(1), asks(2), results(2)],
    ],
    [
      'a missing result of an earlier question',
      /no result/,
      [asked, asks(0), answered, asked, asks(0), results(0)],
    ],
  ])('%s', (_, why, said) => {
    expect(() => placeIn(said, script)).toThrow(Refusal);
    expect(() => placeIn(said, script)).toThrow(why);
  });
});
