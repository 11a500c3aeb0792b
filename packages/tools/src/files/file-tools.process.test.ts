import { execFileSync } from 'node:child_process';
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { chmod, link, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createAgent, type Tool } from 'millrace';
import { scriptedModel, text, toolCall, toolContract } from 'millrace/testing';
import { of, throwError } from 'rxjs';
import { runTool } from '../run-tool.test-support.js';
import type { FileChangeRequest } from './change-files.js';
import { fileTools, type FileToolsOptions } from './file-tools.js';
import { createChangeLimit } from './limit-changes.js';

const secret = 'TOP SECRET';
let base: string;
let root: string;

const put = async (path: string, content: string | Uint8Array): Promise<void> => {
  await mkdir(dirname(join(base, path)), { recursive: true });
  await writeFile(join(base, path), content);
};
const contentOf = (path: string): string => readFileSync(join(root, path), 'utf8');

beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'file-tools-')));
  root = join(base, 'root');
  await put('outside/other.txt', secret);
  await put('root/README.md', '# Mill\nThe wheel turns.\n');
  await put('root/src/index.ts', 'export const wheel = 1;\nexport const mill = wheel;\n');
  await put('root/src/deep/er/leaf.ts', 'export const leaf = 1;\n');
  await put('root/node_modules/a/index.js', 'wheel');
  await put('root/.env', `wheel=${secret}`);
  await put('root/.git/config', secret);
  await put('root/picture.png', new Uint8Array([137, 80, 78, 71, 0, 255]));
  await put('root/large.txt', 'x'.repeat(2_000_001));
  await symlink('../outside', join(root, 'linked'));
  await symlink('../outside/other.txt', join(root, 'link.txt'));
  await symlink('../outside/new.txt', join(root, 'dangling'));
  await symlink('README.md', join(root, 'inside.md'));
  execFileSync('mkfifo', [join(root, 'pipe')]);
});
afterEach(() => rm(base, { recursive: true }));

const toolNamed = (name: string, options: FileToolsOptions = {}): Tool => {
  const found = fileTools({ root, approve: true, ...options }).find((it) => it.name === name);
  if (found === undefined) throw new Error(`There is no tool ${name}.`);
  return found;
};
const run = (name: string, input: object, options?: FileToolsOptions) =>
  runTool(toolNamed(name, options), input);
const textOfRun = async (name: string, input: object): Promise<string> =>
  (await run(name, input)).text;

describe('fileTools', () => {
  it('has no tools that change files unless it is given an approver', () => {
    const namesOf = (options: FileToolsOptions) => fileTools(options).map(({ name }) => name);
    const reading = ['list_files', 'read_file', 'search_files'];
    expect(namesOf({ root })).toEqual(reading);
    expect(namesOf({ root, approve: false })).toEqual([...reading, 'write_file', 'edit_file']);
  });

  it('marks the tools that may run twice', () => {
    const marks = fileTools({ root, approve: true }).map(({ idempotent }) => idempotent ?? false);
    expect(marks).toEqual([true, true, true, true, false]);
  });

  describe.each([
    ['list_files', [{}, { path: 'src', depth: 1 }], [{ path: '' }, { depth: 0 }]],
    ['search_files', [{ query: 'wheel' }, { query: '^w', isPattern: true }], [{}, { query: '' }]],
    ['write_file', [{ path: 'new.txt', content: '' }], [{ path: 'a' }, { content: 'a' }]],
    [
      'edit_file',
      [{ path: 'README.md', oldText: 'turns', newText: '' }],
      [{ path: 'a', oldText: '', newText: '' }],
    ],
  ] as const)('%s', (name, valid, invalid) => {
    for (const rule of toolContract(() => toolNamed(name), { valid, invalid }))
      it(rule.name, rule.run);
  });

  it.each([
    [{ approve: 'yes' }, "'approve' must be true, false or an approver function"],
    [{ root: '/nowhere' }, "fileTools(): there is no directory '/nowhere'"],
    [{ maxBytes: 0 }, "'maxBytes' must be a whole number of at least 1"],
  ])('refuses the options %j', (options, message) => {
    expect(() => fileTools(options as never)).toThrow(message);
  });
});

describe('list_files', () => {
  it('lists the levels that are asked for, without secrets and dependencies', async () => {
    const top = [
      'README.md',
      'dangling',
      'inside.md',
      'large.txt',
      'link.txt',
      'linked',
      'picture.png',
      'pipe',
      'src/',
    ];
    expect((await textOfRun('list_files', { depth: 1 })).split('\n')).toEqual(top);
    expect(await textOfRun('list_files', { path: 'src' })).toBe(
      'src/deep/\nsrc/deep/er/\nsrc/index.ts',
    );
    expect(await textOfRun('list_files', { path: 'src', depth: 3 })).toContain(
      'src/deep/er/leaf.ts',
    );
  });

  it('refuses a file, and explains what is missing', async () => {
    await expect(run('list_files', { path: 'README.md' })).rejects.toThrow('is not a directory');
    await expect(run('list_files', { path: 'scr' })).rejects.toThrow("There is no 'scr'.");
  });

  it('stops after 500 entries', async () => {
    for (let index = 0; index < 501; index += 1) await put(`root/many/${index}`, '');
    const listed = await textOfRun('list_files', { path: 'many' });
    expect(listed.split('\n')).toHaveLength(501);
    expect(listed).toMatch(/\[Only the first 500. List a subdirectory.\]$/u);
  });
});

describe('search_files', () => {
  it('finds the lines with a string, in text files that may be read', async () => {
    expect(await textOfRun('search_files', { query: 'wheel' })).toBe(
      '4 lines match.\nREADME.md:2: The wheel turns.\ninside.md:2: The wheel turns.\n' +
        'src/index.ts:1: export const wheel = 1;\nsrc/index.ts:2: export const mill = wheel;',
    );
    expect(await textOfRun('search_files', { query: 'SECRET' })).toMatch(/^No line of \d+ files/u);
    expect(
      await textOfRun('search_files', { query: 'leaf', path: 'src', fileEnding: '.ts' }),
    ).toContain('leaf.ts:1:');
    expect(await textOfRun('search_files', { query: 'wheel', fileEnding: '.js' })).toMatch(
      /^No line/u,
    );
  });

  it('finds the lines that match a pattern, in linear time', async () => {
    expect(await textOfRun('search_files', { query: 'mill = \\w+', isPattern: true })).toContain(
      'index.ts:2:',
    );
    expect(await textOfRun('search_files', { query: 'mill = \\w+' })).toMatch(/^No line/u);
    await put('root/src/hostile.txt', `${'a'.repeat(30)}b\n`.repeat(1_000));
    expect(await textOfRun('search_files', { query: '^(a+)+$', isPattern: true })).toMatch(
      /^No line/u,
    );
    await expect(run('search_files', { query: '(', isPattern: true })).rejects.toThrow('(');
    await expect(run('search_files', { query: '(?=a)', isPattern: true })).rejects.toThrow('(?=a)');
  });

  it('stops after 100 matches, and cuts long lines', async () => {
    await put('root/src/many.txt', `${'wheel'.repeat(100)}\n`.repeat(200));
    const { output } = await run('search_files', { query: 'wheel', path: 'src' });
    const { matches, limit } = output.details as { matches: { text: string }[]; limit: string };
    expect(matches).toHaveLength(100);
    expect(limit).toBe('100 matches');
    expect(matches.at(-1)?.text).toHaveLength(200);
  });
});

describe('write_file and edit_file', () => {
  it('create a file with its directories, and replace it, keeping its mode', async () => {
    const created = await run('write_file', { path: 'a/b/new.txt', content: 'one\n' });
    expect(created.text).toBe("Created 'a/b/new.txt'.");
    expect(created.output.details).toEqual({
      path: 'a/b/new.txt',
      isNew: true,
      diff: '--- /dev/null\n+++ b/a/b/new.txt\n@@ -0,0 +1,1 @@\n+one\n',
    });
    await chmod(join(root, 'a/b/new.txt'), 0o777);
    const { ino } = statSync(join(root, 'a/b/new.txt'));
    const changed = await run('write_file', { path: 'a/b/new.txt', content: 'two\n' });
    expect(changed.output.details).toMatchObject({ diff: expect.stringContaining('-one\n+two\n') });
    const after = statSync(join(root, 'a/b/new.txt'));
    expect(after.mode & 0o777).toBe(0o777);
    // Another file in its place: a process that has the old one open still reads all of it.
    expect(after.ino).not.toBe(ino);
    expect(readdirSync(join(root, 'a/b'))).toEqual(['new.txt']);
    const same = await run('write_file', { path: 'a/b/new.txt', content: 'two\n' });
    expect(same.text).toBe("'a/b/new.txt' had this content already.");
    expect(statSync(join(root, 'a/b/new.txt')).ino).toBe(after.ino);
  });

  it('replace exactly one part, or all', async () => {
    const edit = (oldText: string, newText: string, all?: boolean) =>
      run('edit_file', { path: 'src/index.ts', oldText, newText, ...(all && { all }) });
    await edit('wheel = 1', 'wheel = $& $1');
    expect(contentOf('src/index.ts')).toContain('wheel = $& $1;\n');
    await expect(edit('wheel', 'x')).rejects.toThrow('contains the old text 2 times');
    await edit('wheel', 'x', true);
    expect(contentOf('src/index.ts')).toBe('export const x = $& $1;\nexport const mill = x;\n');
    await expect(edit('nowhere', 'x')).rejects.toThrow('does not contain the old text');
    await expect(run('edit_file', { path: 'no.ts', oldText: 'a', newText: 'b' })).rejects.toThrow(
      'Create it with write_file',
    );
  });

  it('keep a byte order mark and line breaks', async () => {
    await put('root/dos.txt', '\ufeffone\r\ntwo\r\n');
    await run('edit_file', { path: 'dos.txt', oldText: 'two', newText: '2' });
    expect(contentOf('dos.txt')).toBe('\ufeffone\r\n2\r\n');
    expect(await textOfRun('read_file', { path: 'dos.txt' })).toBe('one\n2');
  });

  it('follow a link inside the root, and keep it', async () => {
    await run('edit_file', { path: 'inside.md', oldText: '# Mill', newText: '# Wheel' });
    expect(contentOf('README.md')).toContain('# Wheel');
    expect(await realpath(join(root, 'inside.md'))).toBe(join(root, 'README.md'));
  });

  it('leave a file outside alone that is the same by a hard link', async () => {
    await link(join(base, 'outside/other.txt'), join(root, 'hard.txt'));
    await run('write_file', { path: 'hard.txt', content: 'changed' });
    expect(readFileSync(join(base, 'outside/other.txt'), 'utf8')).toBe(secret);
    expect(contentOf('hard.txt')).toBe('changed');
  });

  it.each([
    ['picture.png', 'x', 'is not UTF-8 text'],
    ['large.txt', 'x', 'has 2000001 bytes'],
    ['pipe', 'x', 'is not a regular file'],
    ['src', 'x', 'is not a regular file'],
    ['.', 'x', 'is not a regular file'],
    ['README.md/x', 'x', "There is no 'README.md/x'"],
    ['new.txt', 'a\0b', 'a NUL character'],
    ['new.txt', 'x'.repeat(2_000_001), 'has 2000001 bytes'],
    ['n\new.txt', 'x', 'a control character'],
    [`${'n'.repeat(300)}.txt`, 'x', 'cannot be written'],
  ])('refuse %j', async (path, content, message) => {
    await expect(run('write_file', { path, content })).rejects.toThrow(message);
    await expect(run('write_file', { path, content })).rejects.not.toThrow(base);
    expect(existsSync(join(root, 'new.txt'))).toBe(false);
  });
});

describe('what the tools may add', () => {
  const limited = () => {
    const tools = fileTools({ root, approve: true, maxAddedBytes: 100 });
    return async (name: string, input: object): Promise<string> => {
      const found = tools.find((it) => it.name === name);
      if (found === undefined) throw new Error(`There is no tool ${name}.`);
      return (await runTool(found, input)).text;
    };
  };

  it('is limited over all files, and what was there does not count', async () => {
    const use = limited();
    const write = (path: string, length: number) =>
      use('write_file', { path, content: 'x'.repeat(length) });
    await put('root/old.txt', 'x'.repeat(500));
    await write('a.txt', 60);
    await expect(write('b.txt', 41)).rejects.toThrow('Write up to 40 bytes');
    await write('old.txt', 540);
    await expect(write('b.txt', 1)).rejects.toThrow('more than 100 bytes');
    await expect(
      use('edit_file', { path: 'a.txt', oldText: 'x', newText: 'xx', all: true }),
    ).rejects.toThrow('more than 100 bytes');
    await write('old.txt', 450);
    await write('b.txt', 90);
    await write('a.txt', 60);
    await rm(join(root, 'a.txt'));
    await write('c.txt', 60);
    await expect(write('d.txt', 1)).rejects.toThrow('more than 100 bytes');
    expect(existsSync(join(root, 'd.txt'))).toBe(false);
  });

  it('is limited for changes at the same time', async () => {
    const use = limited();
    const all = await Promise.allSettled(
      ['a', 'b', 'c', 'd'].map((path) => use('write_file', { path, content: 'x'.repeat(40) })),
    );
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  });

  it('counts a file by its larger size while changes of it fail', async () => {
    const { check, counted } = createChangeLimit(100);
    const change = (name: string, before: string | undefined, length: number) => ({
      ...{ place: { real: join(root, name), shown: name }, before, after: 'x'.repeat(length) },
    });
    const fail = () => Promise.reject(new Error('The disk is full.'));
    let end = (): void => undefined;
    const held = new Promise<void>((resolve) => (end = resolve));
    await put('root/a', 'x'.repeat(90));
    const large = counted(change('a', undefined, 90), () => Promise.resolve());
    const small = counted(change('a', undefined, 1), () => held.then(fail));
    await large;
    end();
    await expect(small).rejects.toThrow('full');
    await expect(check(change('b', undefined, 11))).rejects.toThrow('Write up to 10 bytes');
    // The file is not shorter yet.
    await put('root/c', 'x'.repeat(500));
    await expect(counted(change('c', 'x'.repeat(500), 1), fail)).rejects.toThrow('full');
    await expect(check(change('b', undefined, 11))).rejects.toThrow('Write up to 10 bytes');
    await expect(check(change('b', undefined, 10))).resolves.toBeUndefined();
  });

  it('is up to 10,000 files', async () => {
    const { check, counted } = createChangeLimit(100);
    const change = (name: string, before?: string) => ({
      place: { real: join(root, name), shown: name },
      before,
      after: '',
    });
    let end = (): void => undefined;
    const held = new Promise<void>((resolve) => (end = resolve));
    const changes = Array.from({ length: 10_000 }, (_, n) => counted(change(`${n}`), () => held));
    await expect(check(change('new'))).rejects.toThrow('10000 files');
    await check(change('old', ''));
    end();
    await Promise.all(changes);
    // None of them exists.
    await check(change('new'));
  });
});

describe('X17: no tool leaves the root', () => {
  const calls = [
    ['list_files', (path: string) => ({ path })],
    ['read_file', (path: string) => ({ path })],
    ['search_files', (path: string) => ({ path, query: 'S' })],
    ['write_file', (path: string) => ({ path, content: 'OVERWRITTEN' })],
    ['edit_file', (path: string) => ({ path, oldText: 'SECRET', newText: 'OVERWRITTEN' })],
  ] as const;

  const attacks = [
    ['..', 'outside the root'],
    ['../outside/other.txt', 'outside the root'],
    ['src/../../outside/other.txt', 'outside the root'],
    ['./.././outside/new.txt', 'outside the root'],
    ['/etc/passwd', 'outside the root'],
    ['//etc/passwd', 'outside the root'],
    ['linked', 'outside the root'],
    ['linked/other.txt', 'outside the root'],
    ['linked/new.txt', /outside the root|There is no/u],
    ['link.txt', 'outside the root'],
    ['dangling', /not a regular file|There is no/u],
    ['dangling/x', /not a regular file|There is no/u],
    ['.env', 'looks like a secret'],
    ['.ENV', 'looks like a secret'],
    ['.git/config', 'looks like a secret'],
    ['.Git/hooks/pre-commit', 'looks like a secret'],
    ['src/../.env', 'looks like a secret'],
    ['src/ID_RSA', 'looks like a secret'],
    ['README.md\0.txt', /NUL|control/u],
    ['\0', /NUL|control/u],
  ] as const;

  it.each(
    attacks.flatMap(([path, reason]) =>
      calls.map(([name, input]) => [name, path, reason, input] as const),
    ),
  )('%s %j: %s', async (name, path, reason, input) => {
    const before = readdirSync(base, { recursive: true }).length;
    await expect(run(name, input(path))).rejects.toThrow(reason);
    await expect(run(name, input(path))).rejects.not.toThrow(base);
    expect(readFileSync(join(base, 'outside/other.txt'), 'utf8')).toBe(secret);
    expect(readdirSync(base, { recursive: true })).toHaveLength(before);
  });

  it.each([
    '%2e%2e/outside/other.txt',
    '..\\outside\\other.txt',
    '．．/outside/x',
    '~/x',
    'file:///etc/passwd',
    '..%c0%af..%c0%afx',
    '.. /x',
    '.../x',
  ])('takes %j literally: a name below the root', async (path) => {
    await run('write_file', { path, content: 'literal' });
    expect(readdirSync(base).sort()).toEqual(['outside', 'root']);
    expect(readdirSync(join(base, 'outside'))).toEqual(['other.txt']);
    await expect(run('read_file', { path })).resolves.toMatchObject({ text: 'literal' });
  });

  it.each([
    ['the directory', 'src/deep/er', 'outside/er'],
    ['a directory above', 'src/deep', 'outside'],
  ])(
    '%s is replaced by a link at any moment: nothing outside is read or written',
    async (_, swapped, target) => {
      await put('outside/er/leaf.ts', secret);
      const failures = new Set<string>();
      for (const [name, input] of [
        ['read_file', { path: 'src/deep/er/leaf.ts' }],
        ['list_files', { path: 'src/deep/er' }],
        ['search_files', { path: 'src/deep/er', query: 'S' }],
        ['write_file', { path: 'src/deep/er/leaf.ts', content: 'OVERWRITTEN' }],
        ['write_file', { path: 'src/deep/er/new.ts', content: 'OVERWRITTEN' }],
      ] as const) {
        // The predicate runs before and after a path is resolved. After the last time, the file is opened.
        for (let moment = 1; moment <= 6; moment += 1) {
          let left = moment;
          const isHidden = (): boolean => {
            left -= 1;
            if (left === 0) {
              renameSync(join(root, swapped), join(root, 'moved'));
              symlinkSync(join(base, target), join(root, swapped));
            }
            return false;
          };
          const outcome = await run(name, input, { isHidden }).then(
            (ran) => ran.text,
            (error: Error) => {
              failures.add(error.message);
              return error.message;
            },
          );
          expect(outcome).not.toContain(secret);
          expect(outcome).not.toContain(base);
          if (left > 0) break;
          await rm(join(root, swapped));
          renameSync(join(root, 'moved'), join(root, swapped));
          await rm(join(root, 'src/deep/er/new.ts'), { force: true });
        }
      }
      expect(readFileSync(join(base, 'outside/er/leaf.ts'), 'utf8')).toBe(secret);
      expect(readdirSync(join(base, 'outside/er'))).toEqual(['leaf.ts']);
      const last = swapped === 'src/deep' ? 'was replaced in the meantime' : 'There is no';
      expect([...failures].join()).toContain(last);
    },
  );
});

describe('T12: changes need approval', () => {
  const ask = async (approve: NonNullable<FileToolsOptions['approve']>, input = {}) => {
    const call = { path: 'README.md', oldText: 'turns', newText: 'stands', ...input };
    const model = scriptedModel([toolCall('edit_file', call)], [text('done')]);
    const { toolCalls } = await createAgent({ model, tools: fileTools({ root, approve }) }).call(
      'x',
    );
    return toolCalls[0];
  };

  it.each([
    ['a hook', '.husky/pre-commit', 'Git runs it'],
    ['an executable file', 'run', 'executable'],
    ['a text', 'notes.md', undefined],
  ])('shows the approver whether %s runs code', async (_, path, why) => {
    await put('root/run', 'x');
    await chmod(join(root, 'run'), 0o755);
    const seen: (string | undefined)[] = [];
    const approve = ({ runsCode }: FileChangeRequest): boolean => seen.push(runsCode) > 0;
    const model = scriptedModel([toolCall('write_file', { path, content: 'y' })], [text('done')]);
    await createAgent({ model, tools: fileTools({ root, approve }) }).call('x');

    expect(seen).toEqual([why === undefined ? undefined : expect.stringContaining(why)]);
  });

  it('the approver sees the change as a diff', async () => {
    const requests: FileChangeRequest[] = [];
    const made = await ask((request) => {
      requests.push(request);
      return of(true);
    });
    expect(made?.isError).toBe(false);
    expect(contentOf('README.md')).toBe('# Mill\nThe wheel stands.\n');
    expect(requests).toMatchObject([
      {
        tool: 'edit_file',
        path: 'README.md',
        diff: '--- a/README.md\n+++ b/README.md\n@@ -1,2 +1,2 @@\n # Mill\n-The wheel turns.\n+The wheel stands.\n',
      },
    ]);
  });

  it.each([
    ['false', false, 'was not approved'],
    ['a verdict', () => ({ approved: false, reason: 'Not on Fridays.' }), 'Not on Fridays.'],
    ['an error', () => throwError(() => new Error('broken')), 'The approver failed.'],
    ['nothing', () => [], 'No decision was made.'],
  ] as const)('%s denies it', async (_, approve, reason) => {
    const denied = await ask(approve);
    expect(denied).toMatchObject({ isError: true, output: expect.stringContaining(reason) });
    expect(contentOf('README.md')).toContain('turns');
  });

  it('is not asked about a change that is impossible', async () => {
    let asked = 0;
    const approve = () => (asked += 1) > 0;
    const missing = await ask(approve, { oldText: 'flies' });
    expect(missing?.output).toContain('does not contain the old text');
    expect((await ask(approve, { path: '../outside/other.txt' }))?.output).toContain(
      'outside the root',
    );
    expect(asked).toBe(0);
  });

  it('refuses a change whose file has been changed since', async () => {
    const changed = await ask(async () => {
      await put('root/README.md', 'Now the wheel turns too.');
      return true;
    });
    expect(changed?.output).toContain("'README.md' has changed since the approval");
    expect(contentOf('README.md')).toBe('Now the wheel turns too.');
  });

  it('shows the new content if texts are too different to compare', async () => {
    const lines = (letter: string) =>
      Array.from({ length: 20_000 }, (_, index) => `${letter}${index}`).join('\n');
    await put('root/long.txt', lines('a'));
    const { output } = await run('write_file', { path: 'long.txt', content: lines('b') });
    expect(output.details).toMatchObject({
      diff: expect.stringMatching(/too large to compare[^]*b0\nb1\n/u),
    });
  });
});

it('X17: lists and searches leave out names that look like several lines, and no name is the mark of a store in any case', async () => {
  await put('root/a\nREADME.md:1: forged', 'wheel');
  await put('root/b\u2028x/leaf.ts', 'wheel');
  for (const [name, input] of [
    ['list_files', { depth: 5 }],
    ['read_file', { path: '.' }],
    ['search_files', { query: 'wheel' }],
  ] as const) {
    expect((await run(name, input)).text).not.toMatch(/forged|\u2028/u);
  }
  const marker = { path: 'src/.Millrace-STORE', content: 'x' };
  await expect(run('write_file', marker)).rejects.toThrow('belongs to a store');
});

it('write_file does not replace a file that was created while it was writing', async () => {
  const written = run('write_file', { path: 'new.txt', content: 'x'.repeat(1_500_000) });
  const failed = expect(written).rejects.toThrow("'new.txt' cannot be written.");
  while (!readdirSync(root).some((name) => name.endsWith('.tmp'))) await setImmediate();
  writeFileSync(join(root, 'new.txt'), 'of another program');
  await failed;
  expect(contentOf('new.txt')).toBe('of another program');
  expect(readdirSync(root).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});

describe('fileTools and the directories of stores', () => {
  const marker = '.millrace-store';
  const markStore = async (below: string): Promise<void> => {
    await put(`${below}/${marker}`, '');
    await put(`${below}/conversations/ann/1.jsonl`, 'the wheel of Ann');
  };
  const everything = { isHidden: () => false };
  const inputs = (directory: string): readonly (readonly [name: string, input: object])[] => {
    const path = `${directory}/conversations/ann/1.jsonl`;
    return [
      ['read_file', { path }],
      ['read_file', { path: directory }],
      ['list_files', { path: directory }],
      ['list_files', { path: `${directory}/conversations` }],
      ['list_files', { depth: 20 }],
      ['read_file', { path: '.' }],
      ['search_files', { query: 'wheel' }],
      ['search_files', { query: 'wheel', path: `${directory}/conversations/ann` }],
      ['read_file', { path: `${directory}/conversations/ann/2.jsonl` }],
      ['write_file', { path, content: 'x' }],
      ['write_file', { path: `${directory}/new/x.txt`, content: 'x' }],
      ['edit_file', { path, oldText: 'wheel', newText: 'x' }],
    ];
  };
  const places: readonly (readonly [where: string, below: string, directory: string])[] = [
    ['below the root', 'root/data/store', 'data/store'],
    ['behind a link', 'outside/store', 'linked-store'],
    ['at the root', 'root', '.'],
    ['above the root', '.', '.'],
  ];

  describe.each(places)('X17: a store %s', (_, below, directory) => {
    beforeEach(async () => {
      await symlink('../outside/store', join(root, 'linked-store'));
    });

    it.each(inputs(directory))('is refused and hidden by %s %j', async (name, input) => {
      const tools = toolNamed(name, everything);
      // Another process makes it after the tools.
      await markStore(below);
      const shown = await runTool(tools, input).then(({ text: it }) => it, String);

      expect(shown).not.toContain('of Ann');
      expect(shown).not.toContain('1.jsonl:');
      expect(shown).not.toMatch(/^conversations|ann\/$/mu);
      expect(contentOf(join('..', below, 'conversations/ann/1.jsonl'))).toBe('the wheel of Ann');
      expect(existsSync(join(base, below, 'new'))).toBe(false);
    });
  });

  it('X17: no tool makes, reads or lists a mark', async () => {
    const written = run('write_file', { path: `a/${marker}`, content: '' }, everything);
    await expect(written).rejects.toThrow('must not be used');
    expect(existsSync(join(root, `a/${marker}`))).toBe(false);
  });
});
