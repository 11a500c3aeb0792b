import { describe, expect, it } from '@jest/globals';
import { parseArguments } from './parse-arguments.js';

const parsed = (...argv: readonly string[]) => {
  const said = { out: '', err: '' };
  const result = parseArguments(argv, {
    writeOut: (text) => (said.out += text),
    writeErr: (text) => (said.err += text),
  });
  return { ...said, result };
};

const nothing = {
  question: '',
  color: true,
  json: false,
  quiet: false,
  maxIterations: undefined,
  model: '',
};

describe('parseArguments', () => {
  it.each([
    [[], nothing],
    [['What', 'is', '2 + 2?'], { ...nothing, question: 'What is 2 + 2?' }],
    [['-'], { ...nothing, question: '-' }],
    [['--', '--help?'], { ...nothing, question: '--help?' }],
    [['--json', 'a'], { ...nothing, question: 'a', json: true }],
    [['a', '-q', '--no-color'], { ...nothing, question: 'a', quiet: true, color: false }],
    [['--model', 'gpt-5', 'a'], { ...nothing, question: 'a', model: 'gpt-5' }],
    [['--max-iterations', '3'], { ...nothing, maxIterations: 3 }],
  ])('reads %j', (argv, given) => {
    expect(parsed(...argv)).toEqual({ out: '', err: '', result: { status: 'run', given } });
  });

  it.each([
    ['--help', 'Usage: millrace'],
    ['-V', '0.1.0'],
    ['-v', '0.1.0'],
    ['--version', '0.1.0'],
  ])('answers %s by itself', (option, begin) => {
    const { out, err, result } = parsed(option);
    expect(result).toEqual({ status: 'done', code: 0 });
    expect(out.startsWith(begin)).toBe(true);
    expect(err).toBe('');
  });

  it('says in its help when it chats, what an answer is, and how it exits', () => {
    const { out } = parsed('--help');
    expect(out).toMatch(/chats in a terminal, but not with --json/);
    expect(out).toMatch(/0 answered \(an "I cannot" is an answer too\)/);
    expect(out).not.toMatch(/-v\b/);
  });

  it.each([
    [['--jsn'], 'Did you mean --json?'],
    [['--max-iterations', '0'], 'It must be a whole number of at least 1.'],
    [['--max-iterations', '1e3'], 'It must be a whole number of at least 1.'],
    [['--max-iterations'], 'argument missing'],
    [['--json', '--quiet'], 'cannot be used with'],
    [[''], 'the question is empty: write one'],
    [['-q', '  ', ''], 'the question is empty: write one'],
    [['--', ' '], 'the question is empty: write one'],
  ])('refuses %j and says why', (argv, why) => {
    const { out, err, result } = parsed(...argv);
    expect(result).toEqual({ status: 'done', code: 2 });
    expect(out).toBe('');
    expect(err).toContain(why);
  });
});
