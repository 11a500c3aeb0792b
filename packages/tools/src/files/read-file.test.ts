import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Tool } from 'millrace';
import fc from 'fast-check';
import { runTool } from '../run-tool.test-support.js';
import { readFile } from './read-file.js';

let base: string;
let root: string;
let tool: Tool;

const write = async (path: string, content: string | Uint8Array): Promise<void> => {
  await mkdir(dirname(join(base, path)), { recursive: true });
  await writeFile(join(base, path), content);
};

const read = async (path: string, input: object = {}): Promise<string> =>
  (await runTool(tool, { path, ...input })).text;

const secret = 'TOP SECRET';

beforeAll(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'read-file-')));
  root = join(base, 'root');
  await write('outside.txt', secret);
  await write('outside/deep.txt', secret);
  await write('root-of-another/file.txt', secret);
  await write('root/README.md', '# Mill\nThe wheel turns.\n');
  await write('root/src/index.ts', 'export {};\n');
  await write('root/.env', secret);
  await write('root/.git/config', secret);
  await write('root/keys/server.pem', secret);
  await write('root/empty.txt', '');
  await write(
    'root/long.txt',
    Array.from({ length: 3_000 }, (_, line) => `line ${line + 1}`).join('\n'),
  );
  await write('root/large.txt', 'x'.repeat(2_000_001));
  await write('root/picture.png', new Uint8Array([137, 80, 78, 71, 0, 255, 254]));
  await write('root/nul.txt', 'a\0b');
  await write('root/..odd/file.txt', 'odd');
  await symlink(join(base, 'outside.txt'), join(root, 'link.txt'));
  await symlink('../outside', join(root, 'linked'));
  await symlink('.env', join(root, 'harmless.txt'));
  await symlink('README.md', join(root, 'inside.md'));
  await symlink('loop', join(root, 'loop'));
  await symlink(join(base, 'nowhere'), join(root, 'dangling'));
  execFileSync('mkfifo', [join(root, 'pipe')]);
  tool = readFile({ root });
});
afterAll(() => rm(base, { recursive: true }));

describe('read_file', () => {
  it.each(['README.md', './README.md', 'src/../README.md', 'inside.md', 'src//..//README.md'])(
    'reads %s',
    async (path) => {
      expect(await read(path)).toBe('# Mill\nThe wheel turns.');
    },
  );

  it('reads an absolute path below the root, and a name that begins with two points', async () => {
    expect(await read(join(root, 'README.md'))).toContain('# Mill');
    expect(await read('..odd/file.txt')).toBe('odd');
  });

  it('says of an empty file that it is empty', async () => {
    expect(await read('empty.txt')).toBe('(The file is empty.)');
  });

  it('gives a long file in parts, and says how to read on', async () => {
    const first = await read('long.txt');
    const [, next = ''] =
      /\[Lines 1 to \d+ of 3000\. Continue with fromLine: (\d+)\.\]$/u.exec(first) ?? [];
    expect(first.length).toBeLessThan(16_000);
    expect(await read('long.txt', { fromLine: Number(next), lines: 2 })).toBe(
      `line ${next}\nline ${Number(next) + 1}\n\n[Lines ${next} to ${Number(next) + 1} of 3000. Continue with fromLine: ${Number(next) + 2}.]`,
    );
    expect(await read('long.txt', { fromLine: 3_000 })).toBe(
      'line 3000\n\n[Lines 3000 to 3000 of 3000.]',
    );
    await expect(read('long.txt', { fromLine: 3_001 })).rejects.toThrow('only 3000 lines');
  });

  it('lists a directory, without what is secret', async () => {
    expect(await read('keys')).toBe("'keys' is a directory. It contains nothing that can be read.");
    const listing = await read('.');
    expect(listing).toContain('The root directory contains:\n');
    expect(listing).toContain('\nREADME.md\n');
    expect(listing).toContain('\nsrc/');
    expect(listing).not.toMatch(/\.env|\.git/u);
  });

  it('gives the path and the lines to the user interface', async () => {
    const { output } = await runTool(tool, { path: './README.md' });
    expect(output.details).toEqual({
      path: 'README.md',
      fromLine: 1,
      toLine: 2,
      totalLines: 2,
      isCut: false,
    });
  });

  it.each([
    ['READNE.md', "Did you mean 'README.md'?"],
    ['src/indx.ts', "Did you mean 'src/index.ts'?"],
    ['src/zzz', "The directory contains, among others: 'src/index.ts'."],
    ['no/such/file', "There is no 'no/such/file'."],
    ['README.md/x', "There is no 'README.md/x'."],
    ['large.txt', 'has 2000001 bytes'],
    ['picture.png', 'not UTF-8 text'],
    ['nul.txt', 'not UTF-8 text'],
    ['pipe', 'not a regular file'],
    ['loop', 'cannot be read'],
    ['x'.repeat(300), 'cannot be read'],
    ['x/'.repeat(512), 'There is no'],
    ['%2e%2e/outside.txt', 'There is no'],
    ['..\\outside.txt', 'There is no'],
    ['file:///etc/passwd', 'There is no'],
    ['~/.bashrc', 'There is no'],
    ['__proto__', 'There is no'],
  ])('names what is wrong with %s', async (path, reason) => {
    await expect(read(path)).rejects.toThrow(reason);
  });

  it('stops immediately when the run is cut', async () => {
    const lent = { signal: AbortSignal.abort(new Error('cut')) };
    await expect(runTool(tool, { path: 'README.md' }, lent)).rejects.toThrow('cut');
  });

  it('reads the working directory by default', async () => {
    expect((await runTool(readFile(), { path: 'package.json' })).text).toContain('"name"');
  });

  it('refuses a root that is no directory, when it is made', () => {
    expect(() => readFile({ root: join(base, 'missing') })).toThrow(/no directory/u);
    expect(() => readFile({ root: join(base, 'outside.txt') })).toThrow(/no directory/u);
  });

  it('takes other limits', async () => {
    const open = readFile({ root, isHidden: () => false, maxBytes: 20 });
    expect((await runTool(open, { path: '.env' })).text).toBe(secret);
    await expect(runTool(open, { path: 'README.md' })).rejects.toThrow('has 24 bytes');
    const own = readFile({ root, isHidden: (path) => path.startsWith('src') });
    await expect(runTool(own, { path: 'src/index.ts' })).rejects.toThrow('must not be used');
  });
});

describe('X17: read_file never gives anything from outside its root', () => {
  it.each([
    '..',
    '../',
    '../outside.txt',
    '../../../../../../etc/passwd',
    'src/../../outside.txt',
    './../outside.txt',
    '/etc/passwd',
    '//etc/passwd',
    '/',
    '../root-of-another/file.txt',
    'link.txt',
    'linked',
    'linked/deep.txt',
    'linked/../linked/deep.txt',
    'linked/no-such-file',
    'linked/no/such/file',
  ])('refuses %s', async (path) => {
    await expect(read(path)).rejects.toThrow('is outside the root directory');
  });

  it('refuses absolute paths of neighbours whose names begin like the root', async () => {
    await expect(read(`${root}-of-another/file.txt`)).rejects.toThrow('outside');
  });

  it('does not reveal files outside by its answer to a link that leads nowhere', async () => {
    await expect(read('dangling')).rejects.toThrow("There is no 'dangling'");
  });

  it.each([
    '.env',
    './src/../.env',
    '.git/config',
    '.git',
    '.GIT/config',
    'keys/server.pem',
    'harmless.txt',
    '.env.local',
  ])('refuses %s, which looks like a secret', async (path) => {
    await expect(read(path)).rejects.toThrow(/must not be used/u);
  });

  it('refuses what is no path', async () => {
    await expect(read('README.md\0.txt')).rejects.toThrow('NUL');
    await expect(read('a'.repeat(10_000))).rejects.toThrow('path');
    await expect(read('')).rejects.toThrow('path');
  });

  it('never reveals a secret, for any path', async () => {
    const parts = fc.constantFrom(
      ...'.. . / root outside outside.txt deep.txt linked link.txt src README.md .env .git config ..odd \\ %2e harmless.txt'.split(
        ' ',
      ),
      '',
      '\0',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(parts, { minLength: 1, maxLength: 8 }),
        fc.boolean(),
        async (given, absolute) => {
          const path = `${absolute ? `${root}/` : ''}${given.join('/')}`;
          const text = await read(path).catch((error: unknown) => String(error));
          expect(text).not.toContain(secret);
          expect(text).not.toContain('deep.txt\n');
        },
      ),
      { numRuns: 300 },
    );
  });
});
