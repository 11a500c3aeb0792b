import { spawnSync } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pack } from './pack.mjs';
import { root } from './workspaces.mjs';

let home;
let project;
let tarballs;

/** Runs a program to its end, and returns its exit code and its output. */
function run(program, args, cwd) {
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, npm_config_audit: 'false', npm_config_fund: 'false' };
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8', env });
  return { status, output: `${stdout}${stderr}` };
}

const init = (...args) =>
  run(process.execPath, [join(root, 'packages/create-millrace/dist/bundle/bin.js'), ...args], home);
const npm = (...args) => run('npm', args, project);

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'create-'));
  project = join(home, 'my-agent');
  tarballs = await pack(join(home, 'packages'));
}, 600_000);
afterAll(() => rmSync(home, { recursive: true }));

it('creates a project that installs, starts, and passes its test and the compiler', () => {
  const { status, output } = init('my-agent', '--yes', '--packages', 'packages');
  expect(output).toContain('Next:\n  cd my-agent\n  npm start\n');
  expect(status).toBe(0);

  expect(npm('start', '--silent')).toEqual({ status: 0, output: 'Snow in Oslo, -3 °C.\n' });
  expect(npm('start', '--silent', '--', 'What is the weather in Bergen?').output).toBe(
    'Snow in Bergen, -3 °C.\n',
  );
  const test = npm('test');
  expect(test.output).toMatch(/pass 2\n/);
  expect(test.status).toBe(0);
  expect(npm('run', 'check', '--silent')).toEqual({ status: 0, output: '' });
}, 600_000);

it.each(['openai', 'anthropic', 'ollama'])(
  'has a program for %s that compiles',
  (provider) => {
    const args = ['my-agent', '--provider', provider, '--force'];
    expect(init(...args, '--packages', 'packages').status).toBe(0);
    expect(npm('run', 'check', '--silent')).toEqual({ status: 0, output: '' });
    if (provider === 'ollama') return;
    // Its key is not set.
    const { status, output } = npm('start', '--silent');
    expect(output).toMatch(/^config: .*_API_KEY.*\n$/);
    expect(status).toBe(1);
  },
  600_000,
);

describe('what the README installs', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const [, names] = /`npm install (millrace [^`]+)`/.exec(readme);
  const [, program, shown] = /```ts\n([^]*?)```\n\n```text\n([^]*?)```/.exec(readme);
  let folder;

  beforeAll(() => {
    folder = join(home, 'readme');
    mkdirSync(folder);
    const overrides = Object.fromEntries(
      [...tarballs].map(([name, path]) => [name, `file:${path}`]),
    );
    const versions = names.split(' ').map((name) => [name, overrides[name] ?? '*']);
    const dependencies = Object.fromEntries(versions);
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ dependencies, overrides }));
    writeFileSync(join(folder, 'first.mjs'), program);
    expect(run('npm', ['install'], folder)).toMatchObject({ status: 0 });
  }, 600_000);

  it('runs the first program, which prints what is shown', () => {
    expect(run(process.execPath, ['first.mjs'], folder)).toEqual({ status: 0, output: shown });
  });

  it('is light: no more than 25 packages and 55 MB on the disk', () => {
    const lock = readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8');
    const { packages } = JSON.parse(lock);
    expect(Object.keys(packages).length).toBeLessThanOrEqual(25);
    const modules = join(folder, 'node_modules');
    const paths = readdirSync(modules, { recursive: true });
    const blocks = paths.map((path) => lstatSync(join(modules, path)).blocks);
    const bytes = blocks.reduce((sum, each) => sum + each * 512, 0);
    expect(bytes).toBeLessThanOrEqual(55e6);
  });
});
