import { describe, expect, it } from '@jest/globals';
import { checked, testsIn } from './rules.mjs';

const tests = (...lines) => lines.join('\n');
const rule = (id, sentence, ...below) => [`- **${id}**: ${sentence}`, ...below].join('\n');
const file = 'packages/mill/src/wheel.test.ts';

describe('the tests that name a rule', () => {
  it('are those with its id in their own title, which may name several', () => {
    const source = tests(
      "it('T1, X2: turns', () => {",
      "  expect('T9: no title').toBeDefined();",
      '});',
      'it.each([',
      "  ['a', 1],",
      "])('T3: is %s', () => {});",
      "it('turns', () => {});",
    );
    const found = testsIn(source).map(({ id, title, line }) => [id, title, line]);
    expect(found).toEqual([
      ['T1', 'turns', 1],
      ['X2', 'turns', 1],
      ['T3', 'is %s', 6],
    ]);
  });

  it('are all tests of a describe with its id in the title, and none after it', () => {
    const source = tests(
      "describe('T1: a wheel', () => {",
      "  it('turns', () => {});",
      '',
      "  it('X2: stops', () => {});",
      '});',
      "it('rests', () => {});",
    );
    expect(testsIn(source).map(({ id, tests: lines }) => [id, lines.length])).toEqual([
      ['T1', 2],
      ['X2', 1],
    ]);
  });
});

describe('the page of the rules', () => {
  const check = (page, sources) => checked(page, new Map(Object.entries(sources)));

  it('gets links to the files with most tests of each rule', () => {
    const sources = Object.fromEntries(
      [1, 2, 3, 4].map((count) => [
        `packages/mill/src/part${count}.test.ts`,
        "it('T1: turns', () => {});\n".repeat(count),
      ]),
    );
    const { page, problems } = check(rule('T1', 'Wheels turn.', '  old links'), sources);
    expect(problems).toEqual([]);
    const links = [4, 3, 2].map((n) => `[mill/part${n}](../packages/mill/src/part${n}.test.ts)`);
    expect(page).toBe(
      rule('T1', 'Wheels turn.', `  10 tests: ${links.join(', ')} and 1 more file`),
    );
    expect(check(page, sources).page).toBe(page);
  });

  it('has a problem for a rule without a test, a test without a rule, and a rule that is there twice', () => {
    const page = [rule('T1', 'a'), rule('T1', 'b'), rule('T2', 'c')].join('\n');
    const { problems } = check(page, { [file]: "it('T1: a', () => {});\nit('Q7: b', () => {});" });
    expect(problems).toEqual([
      "docs/rules.md: no test proves T2. Begin the title of a test with 'T2: ', or remove the rule.",
      `${file}:2: docs/rules.md has no rule Q7. Add "- **Q7**: …" there, or correct the title.`,
      'docs/rules.md: two rules are called T1. Give one of them another id.',
    ]);
  });
});
