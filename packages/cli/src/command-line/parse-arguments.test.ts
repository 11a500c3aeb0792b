import { describe, expect, it } from '@jest/globals';
import { commandNames } from './help.js';
import { parseArguments } from './parse-arguments.js';

const parsed = (...argv: readonly string[]) => {
  const said = { out: '', err: '' };
  const result = parseArguments(argv, {
    writeOut: (text) => (said.out += text),
    writeErr: (text) => (said.err += text),
  });
  return { ...said, result };
};

const printed = { color: true, json: false, quiet: false, store: undefined };
const answered = {
  ...printed,
  maxIterations: undefined,
  model: '',
  prices: '',
  keepDays: undefined,
};
const nothing = { command: 'ask', question: '', session: '', ...answered };
const listed = { command: 'runs', run: '', limit: 20, ...printed };
const replayed = { command: 'replay', run: 'a', speed: 1, follow: false, ...printed };
const chats = {
  command: 'serve',
  port: 3_000,
  color: true,
  model: '',
  maxIterations: undefined,
  store: undefined,
  prices: '',
  page: true,
  devtools: false,
};

const inspected = {
  command: 'devtools',
  port: undefined,
  color: true,
  model: '',
  store: undefined,
};

const flow = {
  ...{
    command: 'flow',
    action: 'run',
    file: 'a.json',
    from: 'millrace',
    question: '',
    live: false,
  },
  ...{ answers: {}, documents: '', model: '', prices: '', ...printed },
};

const served = {
  command: 'mcp',
  agent: false,
  directory: '',
  http: undefined,
  color: true,
  model: '',
  maxIterations: undefined,
};
const forked = { command: 'fork', run: 'a', at: '', question: '', edits: {}, ...answered };

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
    [['--session', 'trip', 'a'], { ...nothing, question: 'a', session: 'trip' }],
    [['--store', './x', 'a'], { ...nothing, question: 'a', store: './x' }],
    [['--no-store', 'a'], { ...nothing, question: 'a', store: false }],
    [['--prices', 'p.json', 'a'], { ...nothing, question: 'a', prices: 'p.json' }],
    [['--keep-days', '0', 'a'], { ...nothing, question: 'a', keepDays: 0 }],
    [['ask', 'runs', '-q'], { ...nothing, question: 'runs', quiet: true }],
    [['--', 'runs'], { ...nothing, question: 'runs' }],
    [['-q', '--', 'runs', 'a'], { ...nothing, question: 'runs a', quiet: true }],
    [['what', 'runs'], { ...nothing, question: 'what runs' }],
    [['help', 'me', '-q'], { ...nothing, question: 'help me', quiet: true }],
    [['help', 'with', 'runs'], { ...nothing, question: 'help with runs' }],
    [['help', 'help'], { ...nothing, question: 'help help' }],
    [['help me'], { ...nothing, question: 'help me' }],
    [['version', 'of', 'node?'], { ...nothing, question: 'version of node?' }],
    [['what', 'help'], { ...nothing, question: 'what help' }],
    [['--', 'help'], { ...nothing, question: 'help' }],
    [['ask', 'help'], { ...nothing, question: 'help' }],
    [['init'], { command: 'init', color: true, argv: [] }],
    [
      ['--no-color', 'init', 'a', '--provider', 'openai', '--help'],
      { command: 'init', color: false, argv: ['a', '--provider', 'openai', '--help'] },
    ],
    [['init', '--yes', 'a'], { command: 'init', color: true, argv: ['--yes', 'a'] }],
    [['help', 'init'], { command: 'init', color: true, argv: ['--help'] }],
    [['runs'], listed],
    [['runs', '--all', '--json'], { ...listed, limit: Infinity, json: true }],
    [['runs', '--limit', '3'], { ...listed, limit: 3 }],
    [
      ['--store', 'x', '--no-color', 'runs', 'a'],
      { ...listed, run: 'a', store: 'x', color: false },
    ],
    [['replay', 'a'], replayed],
    [['replay', 'a', '--speed', '.5'], { ...replayed, speed: 0.5 }],
    [['replay', 'a', '--speed', 'max', '-q'], { ...replayed, speed: Infinity, quiet: true }],
    [['replay', '--follow', '--', 'a'], { ...replayed, follow: true }],
    [['resume', 'a', '--model', 'm'], { command: 'resume', run: 'a', ...answered, model: 'm' }],
    [['fork', 'a', '--question', 'b'], { ...forked, question: 'b' }],
    [
      ['fork', 'a', '--at', '2', '--edit', '1/0=4=2+2', '--edit', '1/1='],
      { ...forked, at: '2', edits: { '1/0': '4=2+2', '1/1': '' } },
    ],
    [['mcp'], served],
    [['mcp', '--agent', '--http', '8808'], { ...served, agent: true, http: 8808 }],
    [['mcp', '--http', '--directory', 'x'], { ...served, http: 0, directory: 'x' }],
    [['mcp', '--model', 'm', '--no-color'], { ...served, model: 'm', color: false }],
    [['serve'], chats],
    [['serve', '--port', '0', '--store', 'x'], { ...chats, port: 0, store: 'x' }],
    [['serve', '--no-store', '--model', 'm'], { ...chats, store: false, model: 'm' }],
    [['serve', '--no-page'], { ...chats, page: false }],
    [['serve', '--prices', 'p.json'], { ...chats, prices: 'p.json' }],
    [['serve', '--devtools'], { ...chats, devtools: true }],
    [['devtools'], inspected],
    [['flow', 'check', 'a.json'], { ...flow, action: 'check' }],
    [['flow', 'run', 'a.json', '--prices', 'p.json'], { ...flow, prices: 'p.json' }],
    [
      ['flow', 'run', 'a.json', 'Hi', 'you', '--live', '--answer', 'h=a=b', '--answer', 'i=', '-q'],
      { ...flow, question: 'Hi you', live: true, answers: { h: 'a=b', i: '' }, quiet: true },
    ],
    [
      ['--no-color', 'flow', 'picture', 'a.json', '--from', 'ragflow', '--documents', 'docs'],
      { ...flow, action: 'picture', from: 'ragflow', documents: 'docs', color: false },
    ],
    [['devtools', '--port', '0', '--store', 'x'], { ...inspected, port: 0, store: 'x' }],
    [['what', 'is', 'mcp'], { ...nothing, question: 'what is mcp' }],
  ])('reads %j', (argv, given) => {
    expect(parsed(...argv)).toEqual({ out: '', err: '', result: { status: 'run', given } });
  });

  it.each([
    ['--help', 'Usage: npx @millrace/cli'],
    ['-V', '0.1.0'],
    ['-v', '0.1.0'],
    ['--version', '0.1.0'],
    ['-h', 'Usage: npx @millrace/cli'],
    ['help', 'Usage: npx @millrace/cli'],
    ['-q help', 'Usage: npx @millrace/cli'],
    ['help -q', 'Usage: npx @millrace/cli'],
    ['version', '0.1.0'],
    ['help runs', 'Usage: npx @millrace/cli runs'],
    ['help ask', 'Usage: npx @millrace/cli ask'],
  ])('answers %s by itself', (argv, begin) => {
    const { out, err, result } = parsed(...argv.split(' '));
    expect(result).toEqual({ status: 'done', code: 0 });
    expect(out.startsWith(begin)).toBe(true);
    expect(err).toBe('');
  });

  it.each(['runs', 'replay', 'resume', 'fork', 'mcp', 'serve', 'devtools', 'flow'])(
    'shows how %s is used',
    (name) => {
      const { out, result } = parsed(name, '--help');
      expect(result).toEqual({ status: 'done', code: 0 });
      expect(out).toContain(`Usage: npx @millrace/cli ${name}`);
      expect(out).toContain(`\n  $ npx @millrace/cli ${name}`);
    },
  );

  it('says in its help when it chats, what an answer is, and how it exits', () => {
    const { out } = parsed('--help');
    expect(out).toMatch(/chats in a terminal \(not with --json/);
    expect(out).toMatch(/0 answered \(an "I cannot" is an answer too\)/);
    expect(out).not.toMatch(/-v\b/);
    expect(out).not.toMatch(/^ {2}(?:help|version)\b/m);
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
    [['runs', '--lmit', '2'], 'Did you mean --limit?'],
    [['runs', 'a', 'b'], 'npx @millrace/cli ask "runs …"'],
    [['runs', '--all', '--limit', '2'], 'cannot be used with'],
    [['replay'], "missing required argument 'id'"],
    [['replay', 'a', '--speed', '0'], 'It must be a number above 0, or "max".'],
    [['replay', 'a', '--speed', '2', '--follow'], 'cannot be used with'],
    [['resume', 'a', '--no-store'], "unknown option '--no-store'"],
    [['fork', 'a'], 'choose a step with --at <step>'],
    [['fork', 'a', '--at', '2', '--question', 'b'], 'cannot be used with'],
    [['fork', 'a', '--at', '2', '--edit', '1/0'], 'It must be a step and its result'],
    [['--session', ' ', 'a'], 'It is empty.'],
    [['mcp', '--http', '65536'], 'It must be a port, up to 65535.'],
    [['mcp', 'a'], 'npx @millrace/cli ask "mcp …"'],
  ])('refuses %j and says why', (argv, why) => {
    const { out, err, result } = parsed(...argv);
    expect(result).toEqual({ status: 'done', code: 2 });
    expect(out).toBe('');
    expect(err).toContain(why);
  });
});

/** The commands, also those of `flow`, that have options of their own. */
const described = [
  [],
  ...commandNames.filter((name) => !['init', 'flow'].includes(name)).map((name) => [name]),
  ...['run', 'check', 'picture'].map((name) => ['flow', name]),
];

/** Without its third letter. */
const misspelled = (name: string): string => name.slice(0, 2) + name.slice(3);

describe('a name that does not exist', () => {
  it.each(described)('is corrected for each option of %s %s', (...command) => {
    const names = parsed(...command, '--help').out.match(/(?<=^ +(?:-\w, )?--)[a-z-]{3,}/gmu) ?? [];
    expect(names.length).toBeGreaterThan(1);
    for (const name of names) {
      const { err, result } = parsed(...command, `--${misspelled(name)}`);
      expect(err).toContain(`Did you mean --${name}?`);
      expect(result).toEqual({ status: 'done', code: 2 });
    }
  });

  it.each(['run', 'check', 'picture'])('is corrected for the action %s of a flow', (name) => {
    expect(parsed('flow', `${name}x`, 'a.json').err).toContain(`Did you mean ${name}?`);
  });

  it.each([
    [['flow', 'check', 'a.json', '--from', 'ragflw'], 'Allowed choices are millrace, ragflow.'],
    [['replay', 'a', '--speed', 'mx'], 'or "max"'],
  ])('is corrected for the value in %j', (argv, why) => {
    expect(parsed(...argv).err).toContain(why);
  });
});
