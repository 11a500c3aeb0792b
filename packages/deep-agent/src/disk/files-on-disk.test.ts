import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { lastValueFrom } from 'rxjs';
import { fileSystemContract } from '../testing/file-system-contract.js';
import { filesOnDisk } from './index.js';

const maxBytes = 10_000;
const outside = realpathSync(mkdtempSync(join(tmpdir(), 'deep-disk-')));
afterAll(() => rmSync(outside, { recursive: true }));
const newRoot = () => mkdtempSync(join(outside, 'root-'));

describe('T25: files on disk', () => {
  const create = () => filesOnDisk(newRoot(), { maxBytes });
  for (const { name, run } of fileSystemContract(create, { maxBytes })) it(name, run);

  const setUp = () => {
    const root = newRoot();
    writeFileSync(join(outside, 'other.txt'), 'secret');
    return { root, files: filesOnDisk(root, { maxBytes }) };
  };
  const write = (files: ReturnType<typeof filesOnDisk>, path: string) =>
    lastValueFrom(files.write$(path, 'changed', 'k'));

  it('follow no symbolic link out of the directory, to read, to write or to list', async () => {
    const { root, files } = setUp();
    symlinkSync(outside, join(root, 'up'));
    symlinkSync(join(outside, 'other.txt'), join(root, 'file'));
    symlinkSync(join(outside, 'new.txt'), join(root, 'dangling'));
    for (const path of ['up/other.txt', 'file']) {
      await expect(lastValueFrom(files.read$(path))).rejects.toThrow('outside the root');
      await expect(write(files, path)).rejects.toThrow('outside the root');
    }
    await expect(write(files, 'up/new.txt')).rejects.toThrow('outside the root');
    await expect(write(files, 'dangling')).rejects.toThrow('not a regular file');
    expect(await lastValueFrom(files.list$())).toEqual([]);
    expect(readFileSync(join(outside, 'other.txt'), 'utf8')).toBe('secret');
    expect(existsSync(join(outside, 'new.txt'))).toBe(false);
  });

  it('replace a file instead of writing into it: another name of it keeps its text', async () => {
    const { root, files } = setUp();
    linkSync(join(outside, 'other.txt'), join(root, 'hard'));
    await write(files, 'hard');
    expect(readFileSync(join(outside, 'other.txt'), 'utf8')).toBe('secret');
  });

  it('refuse secrets, directories, and what is no text', async () => {
    const { root, files } = setUp();
    mkdirSync(join(root, 'folder'));
    writeFileSync(join(root, 'image'), Buffer.from([0xff, 0xfe]));
    await expect(write(files, '.env')).rejects.toThrow('secret');
    await expect(write(files, 'folder')).rejects.toThrow('not a regular file');
    await expect(lastValueFrom(files.read$('image'))).rejects.toThrow('not UTF-8');
  });

  it('leave no file of an aborted write', async () => {
    const { root, files } = setUp();
    files.write$('a', 'x', 'k').subscribe().unsubscribe();
    await write(files, 'b');
    expect(readdirSync(root)).toEqual(['b']);
  });

  it('need a directory', () => {
    expect(() => filesOnDisk(join(outside, 'nowhere'))).toThrow('there is no directory');
  });
});
