import { describe, expect, it } from '@jest/globals';
import { parseMarkdown, withOpenEnd } from './markdown.js';

const patterns = [
  '>',
  '[',
  '*a',
  '**a ',
  '_',
  '`a',
  '``a`',
  '- ',
  '[a](',
  '[](',
  '](',
  '<',
  '<a ',
  'a\n',
  '|a',
  '![',
  '~~a',
  'http://',
  '- a\n',
  '> a\n',
  ' ',
  '\\',
  '&',
  '#',
  '1. a\n  1. b\n',
  '```\n',
  '[a](x "',
  '***a',
  '* * *\n\n',
  '|\n|-|\n\n',
  'a\n- ',
  '(',
  '\t',
  '((',
  '[a]((',
  '$a',
  '$$',
  '$$\n',
  '$$ a\n',
  '\\(',
  '\\(a',
  '\\[ ',
  '\\[\n',
  '[^1]',
  '[^1]: a\n',
  '[a]: b\n',
  '[a][b]',
  '1. a\n1) b\n',
  '1. a\n  - b\n',
  '*a_ ',
  'a**',
  '<!--',
  '1) ',
  '> - ',
];

const length = 100_000;

const texts: readonly (readonly [name: string, text: string])[] = [
  ...patterns.map((pattern) => [pattern, `a${pattern.repeat(length / pattern.length)}b`] as const),
  ['emphasis', `${'*a '.repeat(length / 6)}${'b* '.repeat(length / 6)}`],
  ['columns', `${'|a'.repeat(300)}|\n${'|-'.repeat(300)}|\n${'x\n'.repeat(length / 2)}`],
  [
    'footnotes',
    Array.from({ length: length / 20 }, (_, at) => `[^${at}] [^${at}]\n\n[^${at}]: a\n\n`).join(''),
  ],
];

describe('hostile Markdown', () => {
  it.each(texts)('takes time in proportion to its length: %j', (_, text) => {
    const began = process.cpuUsage().user;
    withOpenEnd(parseMarkdown(text));
    withOpenEnd(parseMarkdown(text.slice(1, -1)));
    // Half a second. Quadratic time is many of them.
    expect((process.cpuUsage().user - began) / 1_000).toBeLessThan(3_000);
  });
});
