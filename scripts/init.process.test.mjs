import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { pack } from './pack.mjs';
import { root } from './workspaces.mjs';

let home;
let project;

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
  await pack(join(home, 'packages'));
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
