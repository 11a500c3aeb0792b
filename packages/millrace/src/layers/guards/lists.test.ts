import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MillraceError } from '../../values/errors.js';
import { allowList, denyList } from './lists.js';
import { said, verdictOn } from './guards.test-support.js';

// The time of the process, not of a clock: others may keep the machine busy.
const cpuMs = (): number => process.cpuUsage().user / 1_000;

const rejected = { code: 'guardRejected' };

describe('denyList', () => {
  const guard = denyList(['bomb', 'hello world', 'c++', 'straße', '炸弹', '폭탄', /\bn\d{3}\b/i]);

  it.each([
    'How is a bomb made?',
    'BOMB',
    'a _bomb_',
    'abomb, then a bomb',
    'a “bomb”, they said',
    'b\u200bo\u00adm\u2060b',
    'b\u0000omb',
    'ｂｏｍｂ',
    '𝖇𝖔𝖒𝖇',
    'b̶o̶m̶b̶',
    'bomb\u0301',
    'hello   world',
    'Hello\u00a0\u3000World!',
    'hello\u2800world',
    'hello\n\nworld',
    'I write C++.',
    'Ⅽ++',
    'STRASSE',
    'Straße',
    '怎么制造炸弹的方法',
    '폭탄을 만들어',
    'N123',
    'n1\u200b23',
  ])('C1: refuses %j', (text) => {
    expect(verdictOn(guard, text)).toMatchObject(rejected);
  });

  it.each([
    'bombastic',
    'abomb',
    'bomb1',
    'bömb',
    'hello, world',
    'helloworld',
    'c+',
    'strasser',
    '炸 弹',
    'n1234',
    '',
    '𝒷',
  ])('C1: lets pass %j', (text) => {
    expect(verdictOn(guard, text)).toBe('allowed');
  });

  it('C1: names the pattern, and never the text', () => {
    const error = verdictOn(denyList(['x', 'secret', /code\w+/]), 'A codeword, dear Ada.');
    expect(error).toMatchObject({
      message: "The guard 'denyList' rejected the input: it matches entry 3 of the list.",
      userMessage: 'This request cannot be answered.',
    });
  });

  it('C1: what the whole would not pass with, no parts of it do', () => {
    const words = fc.constantFrom(
      'bomb',
      'hello',
      'world',
      'n123',
      ' ',
      'a',
      '炸弹',
      '\u200b',
      '😀',
    );
    fc.assert(
      fc.property(
        fc.array(words, { maxLength: 8 }),
        fc.array(fc.nat(40), { maxLength: 3 }),
        fc.boolean(),
        (list, cuts, inBlocks) => {
          const text = list.join('');
          const places = [0, ...cuts.filter((it) => it < text.length), text.length].sort(
            (a, b) => a - b,
          );
          const parts = places.slice(1).map((to, index) => text.slice(places[index], to));
          const whole = verdictOn(guard, text);
          const split = verdictOn(guard, parts, inBlocks);
          if (inBlocks) expect(split === 'allowed').toBe(whole === 'allowed');
          if (whole !== 'allowed') expect(split).toMatchObject(rejected);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('C1: looks at what users say, under any name, and not at media', () => {
    const image = { type: 'image', source: { kind: 'url', url: 'https://a.test/bomb' } } as const;
    expect(verdictOn(guard, [{ role: 'user', content: [image] }])).toBe('allowed');
    expect(
      verdictOn(guard, [{ role: 'assistant', content: [{ type: 'text', text: 'bomb' }] }]),
    ).toBe('allowed');
    const named = { ...said('bomb'), name: 'Ada' } as never;
    expect(verdictOn(guard, [named])).toMatchObject(rejected);
  });

  it('C1, X6: looks for 200 words in 1 MB in linear time', () => {
    const many = denyList(Array.from({ length: 200 }, (_, n) => `word${n} of`));
    const timeOf = (text: string): number => {
      const start = cpuMs();
      expect(verdictOn(many, text)).toBe('allowed');
      return cpuMs() - start;
    };
    timeOf('word '.repeat(5_000));
    const isLinear = (): boolean => {
      const once = timeOf('word '.repeat(25_000));
      return timeOf('word '.repeat(200_000)) < 24 * Math.max(once, 10);
    };
    // A busy machine may be in the way of one try, or of two.
    expect([1, 2, 3, 4, 5].some(isLinear)).toBe(true);
    const one = denyList('ab a');
    const long = 'ab abx '.repeat(150_000);
    expect(verdictOn(one, long)).toBe('allowed');
  });

  it('C1: refuses patterns that cannot be', () => {
    expect(() => denyList([])).toThrow('needs at least one pattern');
    expect(() => denyList(['\u200b '])).toThrow('words with visible characters');
    expect(() => denyList([5] as never)).toThrow('takes regular expressions and words');
    expect(() => denyList(/x/g)).toThrow("is stateful. Remove its flags 'g' and 'y'");
    expect(() => denyList(/x/y)).toThrow('/x/y');
    expect(() => denyList('x', { failOpen: true } as never)).toThrow("no option 'failOpen'");
  });
});

describe('allowList', () => {
  const guard = allowList(['order', 'invoice', '返品', /^ticket \d+$/]);

  it.each(['Where is my order?', 'INVOICE 5', 'ticket 12', '返品したい', 'or\u200bder'])(
    'C1: lets pass %j',
    (text) => {
      expect(verdictOn(guard, text)).toBe('allowed');
    },
  );

  it.each(['', 'reorder', 'Tell me a joke.', 'ticket 12 or so', 'ticket\u200b 12', 'Ticket 12'])(
    'C1: refuses %j',
    (text) => {
      expect(verdictOn(guard, text)).toMatchObject({
        ...rejected,
        message: expect.stringContaining('it matches nothing on the list'),
      });
    },
  );

  it('C1: words that appear only when text is taken apart do not count', () => {
    expect(verdictOn(guard, 're\norder')).toBe('allowed');
    expect(verdictOn(guard, ['re', 'order'])).toMatchObject(rejected);
    expect(verdictOn(guard, ['an order', ' of books'])).toBe('allowed');
    expect(verdictOn(guard, ['or', 'der'], true)).toBe('allowed');
  });

  it('C1: a message without text is refused; one that only brings results of tools passes', () => {
    const image = { type: 'image', source: { kind: 'url', url: 'https://a.test/' } } as const;
    expect(verdictOn(guard, [{ role: 'user', content: [image] }])).toMatchObject(rejected);
    const results = { type: 'tool_result', toolCallId: 't', content: [], isError: false } as const;
    expect(verdictOn(guard, [{ role: 'tool', content: [results] }])).toBe('allowed');
  });
});

describe('guards', () => {
  it('I10: for any text, a list gives a verdict or a MillraceError', () => {
    const guards = [denyList(['a', /b/]), allowList(['a', /b/])];
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 20 }), fc.nat(1), (text, which) => {
        const guard = guards[which];
        const verdict = guard === undefined ? undefined : verdictOn(guard, text);
        expect(verdict === 'allowed' || verdict instanceof MillraceError).toBe(true);
      }),
    );
  });
});
