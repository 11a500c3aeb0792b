import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { init } from 'create-millrace';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'init-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const output = (onWrite: (text: string) => void = () => undefined) => {
  const texts: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      texts.push(text);
      onWrite(text);
      done();
    },
  });
  return { stream, text: () => texts.join('') };
};

const ran = async (argv: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const [out, err] = [output(), output()];
  const code = await init({
    command: 'npx @millrace/cli init',
    argv,
    env,
    directory,
    stdin: new PassThrough().end(),
    stdout: out.stream,
    stderr: err.stream,
  });
  return { code, out: out.text(), err: err.text() };
};

/** Answers each prompt in a terminal with the next of these lines. */
const asked = async (argv: readonly string[], ...typed: readonly string[]) => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const rest = [...typed];
  const err = output();
  const out = output((text) => {
    if (/\): $/.test(text)) queueMicrotask(() => stdin.write(rest.shift() ?? '\u0004'));
  });
  const code = await init({
    command: 'npx @millrace/cli init',
    argv: [...argv, '--no-install'],
    env: {},
    directory,
    stdin,
    stdout: Object.assign(out.stream, { isTTY: true }),
    stderr: err.stream,
  });
  return { code, out: out.text(), err: err.text() };
};

const read = (file: string): string => readFileSync(join(directory, file), 'utf8');
const manifestIn = (folder: string): unknown => JSON.parse(read(`${folder}/package.json`));

describe('npx @millrace/cli init', () => {
  it('writes a project, and prints what it wrote and the next commands', async () => {
    const { code, out, err } = await ran(['My Agent', '--no-install']);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^Created my-agent in My Agent:\n {2}package\.json\n/);
    expect(out).toMatch(
      /\nNext:\n {2}cd "My Agent"\n {2}npm install\n {2}npm start\n {2}npm test\n$/,
    );
    expect(manifestIn('My Agent')).toMatchObject({
      name: 'my-agent',
      type: 'module',
      dependencies: { millrace: expect.stringMatching(/^\^\d/) },
    });
    expect(read('My Agent/src/main.ts')).toContain('createWeatherAgent(demoModel())');
  });

  it.each([
    ['openai', "openai('", '@millrace/openai', 'export OPENAI_API_KEY=…'],
    ['anthropic', "anthropic('", '@millrace/anthropic', 'export ANTHROPIC_API_KEY=…'],
    ['ollama', "ollama('", '@millrace/openai', 'ollama pull '],
  ])('uses %s, and says what it needs', async (provider, model, entry, command) => {
    const { out } = await ran(['.', '--name', 'mine', '--provider', provider, '--no-install']);
    expect(out).toMatch(/^Created mine in \.:/);
    expect(out).toContain(`\n  npm install\n  ${command}`);
    expect(out).not.toContain('cd ');
    const program = read('src/main.ts');
    expect(program).toContain(`from '${entry}'`);
    expect(program).toContain(`createWeatherAgent(${model}`);
  });

  it('names the package manager that started it', async () => {
    const { out } = await ran(['a', '--no-install'], { npm_config_user_agent: 'pnpm/10.1.0 x' });
    expect(out).toContain('\n  pnpm install\n  pnpm start\n  pnpm test\n');
  });

  it('overwrites nothing, unless it is forced to', async () => {
    mkdirSync(join(directory, 'a'));
    writeFileSync(join(directory, 'a/README.md'), 'Mine.');
    const refused = await ran(['a', '--no-install']);
    expect(refused.code).toBe(1);
    expect(refused.err).toMatch(/has README\.md already\. .*--force/);
    expect(read('a/README.md')).toBe('Mine.');
    expect(() => read('a/package.json')).toThrow(/ENOENT/);

    expect((await ran(['a', '--no-install', '--force'])).code).toBe(0);
    expect(read('a/README.md')).toMatch(/^# a\n/);
  });

  it('installs tarballs in place of the registry, and replaces the packages that they need', async () => {
    for (const name of ['millrace-0.1.0', 'millrace-demo-model-0.1.0', 'create-millrace-0.1.0']) {
      writeFileSync(join(directory, `${name}.tgz`), '');
    }
    const at = (name: string): string => `file:${join(directory, name)}-0.1.0.tgz`;
    const overrides = {
      '@millrace/demo-model': at('millrace-demo-model'),
      millrace: at('millrace'),
      'create-millrace': at('create-millrace'),
    };
    await ran(['a', '--no-install', '--packages', '.']);
    await ran(['b', '--no-install'], { MILLRACE_PACKAGES: directory });
    for (const folder of ['a', 'b']) {
      expect(manifestIn(folder)).toMatchObject({
        dependencies: {
          '@millrace/demo-model': at('millrace-demo-model'),
          millrace: at('millrace'),
        },
        overrides,
      });
    }
  });

  it.each([
    [['--provider', 'gpt'], /no provider 'gpt': choose demo, openai, anthropic, ollama/],
    [['--name', 'My Agent'], /'My Agent' is not a name for npm/],
    [['one', 'two'], /give one folder, not one and two/],
    [['--packages', 'none'], /no tarball of millrace in .*none/],
    [['--frce'], /Unknown option '--frce'/],
  ])('refuses %j, and points to the help', async (argv, message) => {
    const { code, out, err } = await ran([...argv, '--no-install']);
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(message);
    expect(err).toContain('npx @millrace/cli init --help');
  });

  it('prints its help', async () => {
    const { code, out } = await ran(['--help']);
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^Usage: npx @millrace\/cli init \[folder\]/),
    ]);
  });
});

describe('npx @millrace/cli init in a terminal', () => {
  it('asks for the folder and the model, and again for a model that it does not have', async () => {
    const { code, out } = await asked([], 'mine\n', '7\n', '2\n');
    expect(code).toBe(0);
    expect(out).toContain('Folder (my-agent): ');
    expect(out).toContain('Choose a number from 1 to 4.\n');
    expect(read('mine/src/main.ts')).toContain('@millrace/openai');
  });

  it('takes the defaults for empty lines, and does not ask for what is given', async () => {
    const { out } = await asked(['--provider', 'ollama'], '\n');
    expect(out).not.toContain('Model (1)');
    expect(read('my-agent/src/main.ts')).toContain('ollama(');
    expect((await asked(['other', '--yes'])).out).toMatch(/^Created other/);
  });

  it('ends with 130, and writes nothing, if the input ends', async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const out = output(() => queueMicrotask(() => stdin.end()));
    const code = await init({
      command: 'npx @millrace/cli init',
      argv: [],
      env: {},
      directory,
      stdin,
      stdout: Object.assign(out.stream, { isTTY: true }),
      stderr: output().stream,
    });
    expect(code).toBe(130);
    expect(() => read('my-agent/package.json')).toThrow(/ENOENT/);
  });
});
