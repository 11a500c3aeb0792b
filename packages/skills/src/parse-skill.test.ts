import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { checkSkill, parseSkill } from './index.js';

const skillOf = (frontMatter: string, body = 'Do it.'): string =>
  `---\n${frontMatter}\n---\n${body}\n`;
const valid = 'name: pdf-forms\ndescription: Fills PDF forms.';

describe('T22: parseSkill', () => {
  it('reads every field of the format', () => {
    const text = skillOf(
      `${valid}\nlicense: MIT\ncompatibility: Needs pdftk\nallowed-tools: Bash(git:*) Read\nmetadata:\n  author: acme\n  version: 1.0`,
      '\n# Steps\n\n1. Open it.\n',
    );
    expect(parseSkill(text)).toEqual({
      name: 'pdf-forms',
      description: 'Fills PDF forms.',
      license: 'MIT',
      compatibility: 'Needs pdftk',
      allowedTools: ['Bash', 'Read'],
      metadata: { author: 'acme', version: '1' },
      instructions: '# Steps\n\n1. Open it.',
    });
  });

  it.each([
    ['a byte order mark and CRLF', `\ufeff${skillOf(valid)}`.replaceAll('\n', '\r\n')],
    ['a list of tools', skillOf(`${valid}\nallowed-tools: [a, b]`)],
    ['a multi-line description', skillOf('name: pdf-forms\ndescription: >\n  Fills\n  forms.')],
    ['a rule in the instructions', skillOf(valid, 'a\n---\nb')],
  ])('reads %s', (_, text) => {
    expect(parseSkill(text).name).toBe('pdf-forms');
    expect(checkSkill(text)).toEqual([]);
  });

  it.each([
    ['# no front matter', 1, 'must start with a front matter'],
    ['---\nname: a', 1, 'has no end'],
    [skillOf('name: a'), 1, "has no 'description'"],
    [skillOf('name: A b\ndescription: x'), 2, "'name' must have 1 to 64"],
    [skillOf('description: x\nname: ../../etc'), 3, "'name' must have 1 to 64"],
    [skillOf('name: a\ndescription: ""'), 3, "'description' must be a string"],
    [skillOf(`name: a\ndescription: ${'x'.repeat(1_025)}`), 3, "'description' must be a string"],
    [skillOf('name: a\ndescription: [x]'), 3, "'description' must be a string"],
    [skillOf(`${valid}\nmetadata: [1]`), 4, "'metadata' must have strings"],
    [skillOf(`${valid}\nmetadata: { a: { b: 1 } }`), 4, "'metadata' must have strings"],
    [skillOf(`${valid}\nallowed-tools: 5`), 4, "'allowed-tools' must be names"],
    [skillOf('name: a\nname: b\ndescription: x'), 3, 'unique'],
    [skillOf('name: a\ndescription: "x'), 3, 'quote'],
    [skillOf('- a\n- b'), 2, 'must have fields'],
    [skillOf('name: a\ndescription: &a x\nlicense: *a'), 4, 'Aliases'],
    [skillOf(`${valid}\nmetadata: ${'['.repeat(15_000)}`), 2, 'nested too deeply'],
    [skillOf(`${valid}\nlicense: ${'x'.repeat(16_001)}`), 1, 'more than 16000 characters'],
    ['x'.repeat(1_000_001), 1, 'more than 1000000 characters'],
  ])('names the file and the line of a problem, sample %#', (text, line, message) => {
    const problem = checkSkill(text).find(({ severity }) => severity === 'error');
    expect(problem).toMatchObject({ line, message: expect.stringContaining(message) });
    expect(() => parseSkill(text, 'x/SKILL.md')).toThrow(
      expect.objectContaining({
        code: 'config',
        message: expect.stringContaining(`x/SKILL.md:${line}: `),
      }),
    );
  });

  it('refuses immediately aliases that expand to gigabytes', () => {
    const bomb = Array.from({ length: 12 }, (_, n) =>
      n === 0 ? 'a0: &a0 [x, x]' : `a${n}: &a${n} [${`*a${n - 1}, `.repeat(9)}x]`,
    );
    const begun = process.cpuUsage().user / 1_000;
    expect(() => parseSkill(skillOf(`${valid}\n${bomb.join('\n')}`))).toThrow('Aliases');
    expect(process.cpuUsage().user / 1_000 - begun).toBeLessThan(2_000);
  });

  it('warns of unknown fields, patterns of arguments, and long or missing instructions', () => {
    const text = skillOf(`${valid}\nmodel: x\nallowed-tools: Bash(git:*)`, 'x\n'.repeat(501));
    expect(checkSkill(text).map(({ line, severity }) => [line, severity])).toEqual([
      [4, 'warning'],
      [5, 'warning'],
      [6, 'warning'],
    ]);
    expect(checkSkill(skillOf(valid, ''))).toEqual([
      { severity: 'warning', line: 4, message: 'The skill has no instructions.' },
    ]);
  });

  it('X15: cannot be polluted', () => {
    const skill = parseSkill(
      skillOf(`${valid}\n__proto__: { polluted: 1 }\nmetadata:\n  __proto__: x\n  constructor: y`),
    );
    expect('polluted' in {}).toBe(false);
    expect(Object.getPrototypeOf(skill.metadata)).toBe(Object.prototype);
  });

  it('either reads the text or throws a typed error', () => {
    const part = fc.oneof(
      fc.string(),
      fc.constantFrom(
        '---',
        '\n',
        'name: a',
        'description: b',
        ': ',
        '&a',
        '*a',
        '!!map',
        '- ',
        '{',
      ),
    );
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        const text = `---\n${parts.join('')}\n---\n`;
        const errors = checkSkill(text).filter(({ severity }) => severity === 'error');
        if (errors.length === 0) expect(parseSkill(text).name).toMatch(/^[a-z0-9-]{1,64}$/u);
        else expect(() => parseSkill(text)).toThrow(expect.objectContaining({ code: 'config' }));
      }),
    );
  });
});
