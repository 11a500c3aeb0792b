import { describe, expect, it } from '@jest/globals';
import { isMillraceError, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import fc from 'fast-check';
import { verdictOn } from '../run-tool.test-support.js';
import { linearPatterns } from './index.js';

const faultOf = (pattern: string): string => {
  try {
    linearPatterns(pattern);
    return 'taken';
  } catch (error) {
    return isMillraceError(error) && error.code === 'config' ? error.message : 'another error';
  }
};

describe('X13: linearPatterns', () => {
  it.each<[pattern: string, matching: readonly string[], other: readonly string[]]>([
    [String.raw`^\d+$`, ['0', '12'], ['', '1a', '٣', '1\n']],
    [String.raw`^\w+$`, ['aZ_9'], ['é', '-', 'ſ']],
    [String.raw`^\s$`, [' ', '\n', '\u00a0', '\u2028', '\u3000', '\ufeff'], ['', 'a', '\u200b']],
    [String.raw`^[\S]$`, ['a', '😀', '\u200b'], ['\u2029', '\v', '']],
    [String.raw`^[^\S\n]$`, [' ', '\t', '\u1680'], ['\n', 'a']],
    [String.raw`^\W\D$`, ['é😀', '-a'], ['a-', '-1']],
    ['^.$', ['a', '😀', '\u0085', '\ud83d'], ['\n', '\r', '\u2028', '\u2029', 'ab']],
    [String.raw`^\/\.?$`, ['/.', '/'], ['/a']],
    [String.raw`^\u{1F600}\uD83D\uDE00\u00e9\x41$`, ['😀😀éA'], ['😀éA']],
    [String.raw`^\u0041\u0042$`, ['AB'], ['A', 'B']],
    [String.raw`^\t\n\v\f\r\0\cJ$`, ['\t\n\v\f\r\0\n'], ['']],
    [String.raw`^[\b]$`, ['\b'], ['b', '']],
    ['^(?<year>[0-9]{4})-(?<month>[0-9]{2})$', ['2025-01'], ['2025-1']],
    ['^(?:a|b)*?c??$', ['', 'ab', 'abc'], ['cc']],
    ['^a{2}b{1,2}c{2,}?$', ['aabcc', 'aabbccc'], ['abcc', 'aabc']],
    ['^[]$', [], ['', 'a']],
    ['^[^]$', ['a', '\n', '😀'], ['', 'ab']],
    ['^[-a][a-][a-c-][^-][--0]$', ['-a-a.', 'a-bx-'], ['b----']],
    [String.raw`^[\--0][+\--]$`, ['.+', '--'], ['+,']],
    ['^[😀-😎]+$', ['😀😎'], ['😏', '']],
    [String.raw`^[^\uD800-\uDFFF]*$`, ['a😀'], ['\ud83d', 'a\ude00']],
    [String.raw`^\p{L}\p{Lu}\P{L}$`, ['éÉ1'], ['éé1', '1É1']],
    [String.raw`^\p{Letter}\p{gc=Nd}\p{General_Category=Lu}$`, ['é1É'], ['11É']],
    [String.raw`^[\p{Script=Greek}\p{sc=Cyrillic}]+$`, ['αд'], ['a']],
    [String.raw`^[^\p{L}\d]+$`, ['-_\n'], ['a', '1']],
    [String.raw`\bmill\b`, ['a mill.', 'mill'], ['mills', 'mill_']],
    [String.raw`\Bmill`, ['windmill'], ['mill', 'a mill']],
    ['^a|b$', ['ab', 'ax', 'xb'], ['xa', 'b\n']],
    ['^()(?:|a)(b||c)$', ['', 'a', 'ac'], ['bb']],
    ['', ['', 'a'], []],
  ])('X13: takes for %s what ECMAScript does', (pattern, matching, other) => {
    const platform = new RegExp(pattern, 'u');
    const { test } = linearPatterns(pattern);
    for (const text of [...matching, ...other]) {
      expect([text, test(text)]).toEqual([text, matching.includes(text)]);
      expect([text, platform.test(text)]).toEqual([text, matching.includes(text)]);
    }
  });

  it.each<[pattern: string, matching: readonly string[], other: readonly string[]]>([
    [String.raw`^[\w-.]+$`, ['a-b.c'], ['a b', 'a/']],
    [String.raw`^[a-\d]+$`, ['a-1'], ['b']],
    [String.raw`^\@\_\"\ $`, ['@_" '], ['@_"']],
    ['^{a}]{,2}$', ['{a}]{,2}'], ['{a}]]']],
    [String.raw`^[\w-.😀]$`, ['😀', '.'], ['\ud83d']],
  ])('X13: reads %s, which is not for the flag u', (pattern, matching, other) => {
    expect(() => new RegExp(pattern, 'u')).toThrow(SyntaxError);
    const { test } = linearPatterns(pattern);
    expect([...matching, ...other].filter((text) => test(text))).toEqual(matching);
  });

  it.each([
    ['^(?=a)', 'uses look-around'],
    ['^(?!a)b', 'uses look-around'],
    ['(?<=a)b', 'uses look-around'],
    ['(?<!a)b', 'uses look-around'],
    [String.raw`^(a)\1$`, 'uses a back-reference'],
    [String.raw`^(?<x>a)\k<x>$`, 'uses a back-reference'],
    [String.raw`^\07$`, 'uses a back-reference'],
    ['^(?i:a)$', /uses inline flags|is not a regular expression/],
    [String.raw`^\Aa\Z$`, String.raw`\A is not an escape of ECMAScript`],
    [String.raw`^[\w-.]\p{L}$`, String.raw`without the flag u, but \p{L} is not an escape`],
    [String.raw`^[\w-.]\u{61}$`, String.raw`without the flag u, but \u{61} is not an escape`],
    [String.raw`^\uD83D$`, 'a lone surrogate'],
    [String.raw`^[a\uDE00]$`, 'a lone surrogate'],
    [String.raw`\p{Script_Extensions=Greek}`, 'RE2 does not support it'],
    ['a{1001}', 'RE2 does not support it'],
    ['[z-a]', 'is not a regular expression'],
    ['(', 'is not a regular expression'],
    ['a**', 'is not a regular expression'],
    [String.raw`\p{Nonsense}\u{61}`, 'is not an escape'],
    ['a'.repeat(2_001), 'more than 2000 characters'],
    ['(a{0,30}){0,40}', 'too large'],
    ['((a{100}){100}){100}', 'too large'],
    ['(a|b)*a(a|b){900}', 'too large'],
    ['(a|b)*a[ab]{900}', 'too large'],
    [String.raw`^(\p{L}|\p{N}|\p{P}|\p{S}){0,100}$`, 'too large'],
    [`${'('.repeat(101)}${')'.repeat(101)}`, 'nested too deep'],
    [String.raw`\p{L}`.repeat(41), 'more than 40 character properties'],
    [String.raw`\p{L}{0,999}`, 'too large'],
  ])('X13: refuses %.40s', (pattern, why) => {
    const fault = faultOf(pattern);
    expect(fault).toMatch(/^The pattern ".*" cannot be checked in linear time: /u);
    expect(fault).toMatch(why);
    expect(fault.length).toBeLessThan(300);
  });

  it('X13: says of random patterns what the platform says', () => {
    const literal = fc.constantFrom(
      'a',
      'b',
      '-',
      '_',
      ' ',
      'é',
      '😀',
      '\\.',
      '\\/',
      '\\x61',
      '\\u0062',
    );
    const set = fc.constantFrom('.', '\\d', '\\w', '\\s', '\\D', '\\W', '\\S', '\\p{L}', '\\P{Lu}');
    const member = fc.constantFrom('a', 'b-z', '0-9', '\\w', '\\S', '\\-', '😀-😎', '\\]', '\\n');
    const bracketed = fc
      .tuple(fc.constantFrom('[', '[^'), fc.array(member, { maxLength: 3 }))
      .map(([open, members]) => `${open}${members.join('')}]`);
    const quantifier = fc.constantFrom(
      '',
      '',
      '',
      '*',
      '+',
      '?',
      '{2}',
      '{1,2}',
      '{0}',
      '*?',
      '{2,}?',
    );
    const { pattern } = fc.letrec<{ pattern: string; group: string; term: string }>((tie) => ({
      group: fc
        .tuple(fc.constantFrom('(', '(?:'), tie('pattern'))
        .map(([open, inner]) => `${open}${inner})`),
      term: fc.oneof(
        { maxDepth: 3 },
        fc.tuple(fc.oneof(literal, set, bracketed), quantifier).map((parts) => parts.join('')),
        fc.constantFrom('^', '$', '\\b', '|'),
        fc.tuple(tie('group'), quantifier).map((parts) => parts.join('')),
      ),
      pattern: fc.array(tie('term'), { maxLength: 4 }).map((terms) => terms.join('')),
    }));
    const character = fc.constantFrom(
      'a',
      'b',
      'Z',
      '0',
      '-',
      '_',
      ' ',
      '\n',
      '\u2028',
      'é',
      '😀',
      '\ud83d',
    );
    fc.assert(
      fc.property(pattern, fc.array(character, { maxLength: 6 }), (source, characters) => {
        const given = characters.join('');
        return linearPatterns(source).test(given) === new RegExp(source, 'u').test(given);
      }),
      { numRuns: 1_000 },
    );
  });

  it('X13: says the same each time', () => {
    const { test } = linearPatterns('a');
    expect(['a', 'b', 'a', 'a'].map((text) => test(text))).toEqual([true, false, true, true]);
  });

  it('X13: takes no text that is too long to be checked', () => {
    const { test } = linearPatterns('^[a-z]+$');
    expect(test('a'.repeat(250_000))).toBe(true);
    expect(test('a'.repeat(250_001))).toBe(false);
    const many = linearPatterns('(a|b)*a(a|b){12}[x-z]');
    expect(many.test(`${'a'.repeat(1_400)}z`)).toBe(true);
    expect(many.test(`${'a'.repeat(1_600)}z`)).toBe(false);
    const steady = linearPatterns('^data:image/(png|jpeg);base64,[A-Za-z0-9+/]+=*$');
    expect(steady.test(`data:image/png;base64,${'a'.repeat(80_000)}==`)).toBe(true);
  });
});

describe('X13: a schema with linearPatterns', () => {
  const bound = tool({
    name: 'bound',
    description: 'Takes texts.',
    input: jsonSchema(
      {
        type: 'object',
        properties: {
          a: { type: 'string', pattern: '^(a+)+$' },
          b: { type: 'string', pattern: String.raw`^\d+$` },
          c: { type: 'string', pattern: '^(?!x)' },
        },
      },
      { patterns: linearPatterns },
    ),
    run: () => 'ran',
  });

  it('X13: holds each text to its own pattern', async () => {
    await expect(verdictOn(bound, { a: 'aa', b: '12', c: 'x' })).resolves.toMatchObject({
      valid: true,
    });
    await expect(verdictOn(bound, { a: '12', b: 'aa' })).resolves.toMatchObject({
      valid: false,
      problems: [
        expect.stringMatching(/^a: must match/u),
        expect.stringMatching(/^b: must match/u),
      ],
    });
  });

  it('X13: warns of a pattern that is passed over', () => {
    expect(bound.warnings).toEqual([
      "tool 'bound': 'input': the pattern \"^(?!x)\" is not supported: it is ignored.",
    ]);
  });
});
