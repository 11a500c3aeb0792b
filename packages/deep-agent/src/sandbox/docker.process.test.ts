import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { lentToolContext } from 'millrace/testing';
import { ran } from '../testing/sandbox-contract.js';
import { docker, type DockerOptions } from './docker.js';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'deep-docker-')));
afterAll(() => rmSync(root, { recursive: true }));

const isRoot = process.getuid?.() === 0;

/** A stand-in for the client: notes its arguments and environment, then does what the test asks for. No container runs. */
const setUp = (does: string, options: Partial<DockerOptions> = {}) => {
  const folder = mkdtempSync(join(root, 'case-'));
  const program = join(folder, 'docker');
  const directory = join(folder, 'files');
  mkdirSync(directory);
  // As root, code runs as the owner of the directory.
  if (isRoot) chownSync(directory, 65_534, 65_534);
  const script = `#!${process.execPath}
const fs = require('node:fs');
const [verb, ...args] = process.argv.slice(2);
const noted = ${JSON.stringify(folder)} + '/' + verb;
fs.writeFileSync(noted + '.part', JSON.stringify({ args, env: process.env }));
fs.renameSync(noted + '.part', noted);
const code = () => {
  const mount = args.find((it) => it.includes('target=/code'));
  return fs.readFileSync(/source=([^,]*)/.exec(mount)[1], 'utf8');
};
if (verb === 'run') { ${does} }
`;
  writeFileSync(program, script);
  chmodSync(program, 0o755);
  const noted = (verb: string): { args: readonly string[]; env: Record<string, string> } =>
    JSON.parse(readFileSync(join(folder, verb), 'utf8'));
  const wasCalled = (verb: string) => existsSync(join(folder, verb));
  const sandbox = docker({ image: 'python:3.13-slim', directory, program, ...options });
  return { sandbox, noted, wasCalled, directory };
};

describe('X20: a sandbox of Docker, with a stand-in for its client', () => {
  it('runs the code in a container that may do little', async () => {
    process.env['DEEP_SECRET'] = 'hunter2';
    const { sandbox, noted, wasCalled, directory } = setUp('console.log(code())');
    const { text, exitCode, files } = await ran(sandbox, 'print("hi")');
    expect(text).toContain('print("hi")');
    expect([exitCode, files]).toEqual([0, []]);
    const { args, env } = noted('run');
    expect(
      args.map((it) => it.replace(/millrace-[\w-]+/u, 'NAME').replace(/source=[^,]*/u, 'source')),
    ).toEqual([
      ...['--rm', '--pull', 'never', '--name', 'NAME', '--init', '--network', 'none'],
      ...['--memory', '512m', '--memory-swap', '512m', '--pids-limit', '64', '--cpus', '1'],
      ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--read-only'],
      ...[
        '--tmpfs',
        '/tmp:size=64m',
        '--user',
        isRoot ? '65534:65534' : `${process.getuid?.()}:${process.getgid?.()}`,
      ],
      ...[
        '--mount',
        'type=bind,source,target=/work',
        '--mount',
        'type=bind,source,target=/code,readonly',
      ],
      ...['--workdir', '/work', '--env', 'HOME=/tmp', 'python:3.13-slim', 'python3', '-B', '/code'],
    ]);
    expect(args).toContain(`type=bind,source=${directory},target=/work`);
    expect(JSON.stringify(env)).not.toContain('hunter2');
    expect(wasCalled('rm')).toBe(false);
  });

  it('returns exit codes, and takes limits, the network and another language', async () => {
    const options = {
      network: true,
      memoryMb: 64,
      maxProcesses: 5,
      command: ['node'],
      language: 'JavaScript in Node.js.',
    };
    const { sandbox, noted } = setUp('console.log("bad"); process.exitCode = 3', options);
    expect(await ran(sandbox, 'x')).toMatchObject({ exitCode: 3 });
    expect(sandbox.language).toBe('JavaScript in Node.js.');
    const { args } = noted('run');
    expect(args).not.toContain('--network');
    expect(args).toEqual(expect.arrayContaining(['64m', '5']));
    expect(args.slice(-3)).toEqual(['python:3.13-slim', 'node', '/code']);
  });

  it.each([
    ['the caller leaves', undefined],
    ['the time is over', 500],
  ])('removes the container when %s', async (_, timeoutMs) => {
    const { sandbox, noted, wasCalled } = setUp('setInterval(() => {}, 1e6)', { timeoutMs });
    const run = sandbox.run$('x', lentToolContext()).subscribe();
    while (!wasCalled('run')) await new Promise(setImmediate);
    if (timeoutMs === undefined) run.unsubscribe();
    while (!wasCalled('rm')) await new Promise(setImmediate);
    const { args } = noted('run');
    expect(noted('rm').args).toEqual(['--force', args[args.indexOf('--name') + 1]]);
  });

  it.each(['a,source=', 'a"b', 'a\nb'])(
    'refuses a directory whose path could be options of a mount: %j',
    (name) => {
      const directory = join(mkdtempSync(join(root, 'odd-')), name);
      mkdirSync(directory);
      if (isRoot) chownSync(directory, 65_534, 65_534);
      const link = `${mkdtempSync(join(root, 'link-'))}/plain`;
      symlinkSync(directory, link);
      for (const path of [directory, link]) {
        expect(() => docker({ directory: path, image: 'x' })).toThrow(
          expect.objectContaining({
            code: 'config',
            message: expect.stringContaining('Rename the directory'),
          }),
        );
      }
    },
  );

  (isRoot ? it : it.skip)('runs no code as root', () => {
    expect(() => docker({ directory: root, image: 'x' })).toThrow('docker() runs no code as root');
  });

  it('names the fix if it cannot start', async () => {
    const { sandbox } = setUp(
      'console.error("Cannot connect to the Docker daemon"); process.exitCode = 125',
    );
    await expect(ran(sandbox, 'x')).rejects.toThrow(
      'needs a running Docker, and the image python:3.13-slim',
    );
    expect(() => docker({ directory: root, image: '--privileged' })).toThrow("'image'");
    expect(() => docker({ directory: root } as never)).toThrow("'image'");
  });
});
