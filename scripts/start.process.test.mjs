import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { root } from './workspaces.mjs';

let home;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'start-'));
});
afterEach(() => rmSync(home, { recursive: true }));

/** Runs what `npm start` runs, and tells what it prints and what its processes load. */
const start = (...args) => {
  const log = join(home, 'processes');
  const { stdout, status } = spawnSync(process.execPath, ['scripts/start.mjs', ...args], {
    cwd: root,
    encoding: 'utf8',
    env: {
      PATH: process.env.PATH,
      HOME: home,
      MILLRACE_TEST_LOG: log,
      NODE_OPTIONS: `--import ${pathToFileURL(join(root, 'scripts/test/log-process.mjs')).href}`,
    },
  });
  const processes = readFileSync(log, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  return { stdout, status, processes };
};

const names = (processes) => processes.map(({ program }) => program.split(/[/\\]/).at(-1));
const ours = ({ files }) =>
  files.filter((file) => /[/\\](packages|scripts)[/\\](?!.*node_modules)/.test(file));

it('needs two processes and few files when everything is built', () => {
  const { stdout, processes } = start('--help');
  expect(stdout).toContain('Usage: npx @millrace/cli');
  expect(names(processes)).toEqual(['bin.js', 'start.mjs']);
  const [command, starter] = processes;
  // The command, its parser, the layout of its help and the gate.
  expect(ours(command)).not.toEqual([]);
  expect(ours(command).length).toBeLessThanOrEqual(4);
  expect(command.files.some((file) => file.includes('rxjs'))).toBe(false);
  expect(ours(starter)).not.toEqual([]);
  expect(ours(starter).length).toBeLessThanOrEqual(8);
});

// Three of them are parts of layers, for the search of tools that @millrace/tools has.
it('answers from 42 files of ours', () => {
  const { stdout, processes } = start('--no-store', 'What is 6 * 7?');
  expect(stdout).toContain('42');
  expect(names(processes)).toEqual(['bin.js', 'start.mjs']);
  expect(ours(processes[0]).length).toBeLessThanOrEqual(42);
});

it('ends with the exit code of the command', () => {
  expect(start('--no-such-option').status).toBe(2);
});
