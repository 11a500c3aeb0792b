import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';

const packages = new URL('../../../', import.meta.url);
const program = fileURLToPath(new URL('cli/dist/bundle/bin.js', packages));
const directory = mkdtempSync(join(tmpdir(), 'millrace-eval-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

/** Writes a module that imports the packages of this workspace. */
const write = (name: string, code: string): void => {
  const url = (path: string): string => JSON.stringify(new URL(path, packages).href);
  writeFileSync(
    join(directory, name),
    `import { createAgent } from ${url('millrace/dist/bundle/index.js')};
import { scriptedModel, text } from ${url('millrace/dist/bundle/testing.js')};
import { evaluate, exactAnswer } from ${url('evals/dist/bundle/index.js')};
${code}`,
  );
};

/** An agent that answers with the variable ANSWER, and with WAIT never answers the second case. */
write(
  'support.eval.mjs',
  `const answer = [text(process.env.ANSWER ?? '4')];
const agent = createAgent({ model: scriptedModel(answer, answer) });
if (process.env.WAIT) process.stdin.resume(); // keeps the process alive, as a socket does
const call = (input, options) => process.env.WAIT && input === 'wait' ? new Promise(() => {}) : agent.call$(input, options);
const cases = [{ input: '2 + 2?', expected: '4' }, { id: 'slow', input: 'wait', expected: '4' }];
export default evaluate(call, cases, { correct: exactAnswer() }, { name: 'support' });`,
);
write('plain.mjs', 'export const cases = [];');
write(
  'wrong.mjs',
  'export default evaluate(createAgent({ model: scriptedModel() }), [], { x: () => 1 });',
);
write('bug.mjs', 'throw new Error("a bug of theirs");');
writeFileSync(join(directory, 'typed.xyz'), 'nothing');

const baseline = join(directory, 'support.eval.json');

const run = (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, 'eval', ...argv], {
    ...{ cwd: directory, env, encoding: 'utf8' },
  });
  return { code: status, out: stdout, err: stderr };
};

describe('npx @millrace/cli eval', () => {
  it('writes a baseline, compares with it, fails on a regression, and writes it again', () => {
    const inCi = run(['support.eval.mjs'], { CI: '1' });
    expect([inCi.code, existsSync(baseline)]).toEqual([1, false]);
    expect(inCi.out).toContain('There is no baseline support.eval.json');

    const first = run(['support.eval.mjs']);
    expect([first.code, first.err]).toEqual([0, '']);
    expect(first.out).toMatch(
      /^support.eval.mjs\n +correct +pass +tokens +time\n2 \+ 2\? +1.00 +100 % .*\nslow +1.00 .*\n2 cases +1.00 .*\n\nWrote the baseline support.eval.json. Commit it.\n$/u,
    );
    const written = readFileSync(baseline, 'utf8');
    expect(run(['support.eval.mjs'], { CI: '1' })).toMatchObject({
      code: 0,
      out: expect.stringContaining('No regression from support.eval.json.'),
    });

    const worse = run(['support.eval.mjs'], { ANSWER: '5' });
    expect(worse.code).toBe(1);
    expect(worse.out).toContain(`\
Worse than support.eval.json. To accept this: npx @millrace/cli eval support.eval.mjs --update
  worse: 2 + 2?: correct 1.00 → 0.00
  worse: 2 + 2?: pass rate 100 % → 0 %
`);
    expect(readFileSync(baseline, 'utf8')).toBe(written);
    expect(run(['support.eval.mjs', '--tolerance', '1'], { ANSWER: '5' }).code).toBe(0);

    expect(run(['support.eval.mjs', '--update'], { ANSWER: '5' }).code).toBe(0);
    expect(readFileSync(baseline, 'utf8')).not.toBe(written);
    const better = run(['support.eval.mjs']);
    expect([better.code, better.out]).toEqual([
      0,
      expect.stringContaining('  better: slow: correct 0.00 → 1.00\n'),
    ]);
    rmSync(baseline);
  });

  it('prints lines of JSON', () => {
    const { code, out } = run(['support.eval.mjs', '--json']);
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect([code, lines.map(({ type }) => type)]).toEqual([
      0,
      ['case', 'case', 'summary', 'baseline'],
    ]);
    expect(lines[0]).toMatchObject({
      ...{ file: 'support.eval.mjs', id: '2 + 2?', passRate: 1, scores: { correct: { mean: 1 } } },
      trials: [{ text: '4', toolCalls: [], scores: { correct: { status: 'scored', score: 1 } } }],
    });
    expect(lines[3]).toMatchObject({ status: 'written', isFine: true, changes: [] });
    rmSync(baseline);
  });

  it('is misused: exit code 2, and the fix', () => {
    const wrong: readonly (readonly [readonly string[], string])[] = [
      [['none.mjs'], "error: there is no file 'none.mjs'."],
      [['.'], "error: '.' is not a file."],
      [['plain.mjs'], "'plain.mjs' must export an evaluation"],
      [['typed.xyz'], "cannot import 'typed.xyz'"],
      [['wrong.mjs', '--tolerance', 'x'], 'It must be a number of at least 0'],
      [['support.eval.mjs', '--updte'], 'Did you mean --update?'],
      [[], "missing required argument 'files'"],
    ];
    for (const [argv, message] of wrong) {
      const { code, err } = run(argv);
      expect([argv, code, err]).toEqual([argv, 2, expect.stringContaining(message)]);
      expect(err).toContain('npx @millrace/cli eval --help');
    }
  });

  it('fails if the program of the file does', () => {
    expect(run(['wrong.mjs'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('a list of at least one case'),
    });
    expect(run(['bug.mjs'])).toMatchObject({
      code: 1,
      err: expect.stringContaining("'bug.mjs' cannot be imported: a bug of theirs"),
    });
  });

  it('reads the baseline before any call, and keeps a damaged one', () => {
    writeFileSync(baseline, '{"version":2}');
    const { code, out, err } = run(['support.eval.mjs']);
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain(`The baseline '${baseline}' cannot be read: its 'version' must be 1`);
    expect(readFileSync(baseline, 'utf8')).toBe('{"version":2}');
    expect(run(['support.eval.mjs', '--update']).code).toBe(0);
    rmSync(baseline);
  });

  it('prints its help', () => {
    const { code, out } = run(['--help']);
    expect([code, out]).toEqual([0, expect.stringContaining('--token-tolerance <number>')]);
    expect(out.split('\n').every((line) => line.length <= 100)).toBe(true);
  });

  it('needs the package in the project', () => {
    const project = join(directory, 'project');
    const modules = join(project, 'node_modules');
    const ours = join(modules, '@millrace');
    mkdirSync(ours, { recursive: true });
    const root = fileURLToPath(new URL('../node_modules', packages));
    for (const name of ['commander', 'picocolors', 'rxjs', 'millrace']) {
      symlinkSync(join(root, name), join(modules, name));
    }
    // A copy of the command that is not next to the package.
    cpSync(fileURLToPath(new URL('cli/dist', packages)), join(ours, 'cli/dist'), {
      recursive: true,
    });
    cpSync(fileURLToPath(new URL('cli/package.json', packages)), join(ours, 'cli/package.json'));
    const bin = join(ours, 'cli/dist/bundle/bin.js');
    const { status, stderr } = spawnSync(process.execPath, [bin, 'eval', '../plain.mjs'], {
      ...{ cwd: project, env: {}, encoding: 'utf8' },
    });
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining('npm install --save-dev @millrace/evals'),
    ]);
  });

  it('shows what there is after Ctrl-C, and writes no baseline', async () => {
    const child = spawn(process.execPath, [program, 'eval', 'support.eval.mjs', '--json'], {
      ...{ cwd: directory, env: { WAIT: '1' } },
    });
    let [out, err] = ['', ''];
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
      // The first case has ended, and the second one waits.
      if (text.includes('"type":"case"')) child.kill('SIGINT');
    });
    const [code] = (await once(child, 'close')) as [number];
    expect([code, existsSync(baseline)]).toEqual([130, false]);
    expect(out).toContain(
      '"type":"summary","file":"support.eval.mjs","name":"support.eval.mjs","cases":["2 + 2?"]',
    );
    expect(err).toBe('Stopped after 1 of 2 cases. Nothing was compared.\n');
  });
});
