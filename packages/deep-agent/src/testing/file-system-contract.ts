import assert from 'node:assert/strict';
import {
  concat,
  defaultIfEmpty,
  forkJoin,
  lastValueFrom,
  type Observable,
  timer,
  toArray,
} from 'rxjs';
import type { FileContent, FileSystem } from '../file-system.js';

/** A check of a contract: `it(check.name, check.run)`. */
export interface Check {
  readonly name: string;
  run(): Promise<void>;
}

/** Facts about a file system. */
export interface FileSystemContractOptions {
  /** Its maximum size of a file, in bytes. */
  readonly maxBytes: number;
}

const done = <T>(source$: Observable<T>): Promise<T | undefined> =>
  lastValueFrom(source$.pipe(defaultIfEmpty(undefined)));

const write = (
  files: FileSystem,
  path: string,
  content: FileContent,
  key = path,
): Promise<unknown> => done(files.write$(path, content, key));

/** Paths that no file system takes: they leave the root, or not every file system can have them. */
export const badPaths: readonly string[] = [
  ...['', '.', '/', '..', '../x', '/../x', 'a/../../x', 'a/..', 'a/./b', 'a//b', 'a/', '..\\x'],
  ...['a\0b', 'a\nb', 'a\ud800', 'C:\\x', `${'x'.repeat(300)}.txt`, 'ü'.repeat(121)],
  'x/'.repeat(600) + 'x',
];

const oddPaths: readonly string[] = [
  ...['ä ö/ß.md', '日本語.txt', '👩‍🚀.md', 'with space', 'a.b.c', '-rf', '%2e%2e', '~', '$HOME', '*'],
  'x'.repeat(240),
];

const oddTexts: readonly string[] = [
  '',
  '\n',
  '.',
  ' a ',
  'a\r\nb\r\n',
  '👩‍🚀 ä',
  '{"a":1}',
  '\ufeffa',
];

/** Returns the checks of a file system. `create` returns an empty one, for each check. */
export const fileSystemContract = (
  create: () => FileSystem | Promise<FileSystem>,
  { maxBytes }: FileSystemContractOptions,
): readonly Check[] => {
  const check = (name: string, run: (files: FileSystem) => Promise<void>): Check => ({
    name,
    run: async () => run(await create()),
  });
  return [...contentChecks(check, maxBytes), ...writerChecks(check)];
};

type Add = (name: string, run: (files: FileSystem) => Promise<void>) => Check;

const contentChecks = (check: Add, maxBytes: number): readonly Check[] => [
  check('is empty at first, and has what is written', async (files) => {
    assert.deepEqual(await done(files.list$()), []);
    assert.equal(await done(files.read$('a.md')), undefined);
    await write(files, 'b/c.md', 'one', 'k1');
    await write(files, '/a.md', 'two', 'k2');
    await write(files, './b/c.md', 'three', 'k3');
    assert.deepEqual(await done(files.list$()), ['a.md', 'b/c.md']);
    assert.equal(await done(files.read$('a.md')), 'two');
    assert.equal(await done(files.read$('b/c.md')), 'three');
  }),
  check('gives back any text as it was', async (files) => {
    for (const [index, text] of oddTexts.entries()) {
      await write(files, 'a', text, `k${index}`);
      assert.equal(await done(files.read$('a')), text);
    }
    await write(files, 'a', 'x\ud800y\0z', 'halves');
    assert.equal(await done(files.read$('a')), 'x\ufffdy\ufffdz');
  }),
  check('has any path below the root, in one form', async (files) => {
    for (const path of oddPaths) await write(files, path, path);
    assert.deepEqual(await done(files.list$()), [...oddPaths].sort());
    for (const path of oddPaths) assert.equal(await done(files.read$(path)), path);
    await write(files, 'e\u0301', 'accent');
    assert.equal(await done(files.read$('\u00e9')), 'accent');
  }),
  check('refuses paths that leave the root or are not valid, in a sentence', async (files) => {
    for (const path of badPaths) {
      const isSentence = (error: unknown) => error instanceof Error && error.message.endsWith('.');
      await assert.rejects(write(files, path, 'x'), isSentence, JSON.stringify(path));
      await assert.rejects(done(files.read$(path)), isSentence, JSON.stringify(path));
    }
    assert.deepEqual(await done(files.list$()), []);
  }),
  check('limits the size of a file, in bytes', async (files) => {
    await write(files, 'a', 'x'.repeat(maxBytes), 'k1');
    await assert.rejects(write(files, 'a', 'x'.repeat(maxBytes + 1), 'k2'), /limit/u);
    await assert.rejects(write(files, 'a', 'ü'.repeat(maxBytes / 2 + 1), 'k3'), /limit/u);
    assert.equal((await done(files.read$('a')))?.length, maxBytes);
  }),
];

const writerChecks = (check: Add): readonly Check[] => [
  check('is cold: nothing happens before someone subscribes', async (files) => {
    const write$ = files.write$('a', 'x', 'k');
    await done(timer(0));
    assert.deepEqual(await done(files.list$()), []);
    await done(write$);
    assert.deepEqual(await done(files.list$()), ['a']);
  }),
  check('emits once and completes', async (files) => {
    const read$ = concat(files.list$(), files.read$('a'));
    assert.deepEqual(await lastValueFrom(read$.pipe(toArray())), [[], undefined]);
  }),
  check('loses no change of concurrent writers', async (files) => {
    const numbers = Array.from({ length: 20 }, (_, n) => n);
    const add = (n: number) => files.write$('log', (before = '') => `${before}${n};`, `k${n}`);
    await done(forkJoin(numbers.map((n) => add(n).pipe(defaultIfEmpty(undefined)))));
    const written = ((await done(files.read$('log'))) ?? '').split(';').slice(0, -1);
    assert.deepEqual(
      written.map(Number).sort((a, b) => a - b),
      numbers,
    );
  }),
  check('passes on the error of a change, and keeps the file', async (files) => {
    await write(files, 'a', 'x');
    const failing = (): string => {
      throw new Error('Not this.');
    };
    await assert.rejects(write(files, 'a', failing, 'k'), /Not this\./u);
    assert.equal(await done(files.read$('a')), 'x');
  }),
  check(
    'repeats a write with the same key without an effect, if it is idempotent',
    async (files) => {
      const add = (key: string) => write(files, 'a', (before = '') => `${before}x`, key);
      for (const key of ['k#1', 'k', 'k#1', 'k']) await add(key);
      assert.equal(await done(files.read$('a')), files.isIdempotent === true ? 'xx' : 'xxxx');
    },
  ),
];
