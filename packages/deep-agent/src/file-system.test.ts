import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { inProcessMemory, type Memory, textOf } from 'millrace';
import { openFiles } from '@millrace/store';
import fc from 'fast-check';
import { EMPTY, firstValueFrom, forkJoin, lastValueFrom, of, throwError } from 'rxjs';
import { toPath } from './file-system.js';
import { filesInMemory } from './files-in-memory.js';
import { badPaths, fileSystemContract } from './testing/file-system-contract.js';

const maxBytes = 10_000;
const directory = mkdtempSync(join(tmpdir(), 'deep-'));
const store = openFiles(directory);
afterAll(async () => {
  await lastValueFrom(store.close$(), { defaultValue: undefined });
  rmSync(directory, { recursive: true });
});

/** A memory without branches, which is a line. */
const line = (memory: Memory): Memory => ({
  load$: () => memory.load$(),
  append$: (messages) => memory.append$(messages),
});
let count = 0;
const nextId = () => `files ${(count += 1)}`;

const systems = {
  'in this process': () => filesInMemory({ maxBytes }),
  'in a store of files': () => filesInMemory({ memory: store.memory, id: nextId(), maxBytes }),
};

describe.each(Object.entries(systems))('T25: files %s', (_, create) => {
  for (const { name, run } of fileSystemContract(create, { maxBytes })) it(name, run);
});

describe('T25: files in memory', () => {
  it('are of their id only, and survive the object', async () => {
    const memory = inProcessMemory();
    const files = (id: string) => filesInMemory({ memory, id });
    await lastValueFrom(files('ada').write$('a', 'x', 'k'));
    expect(await firstValueFrom(files('ada').read$('a'))).toBe('x');
    expect(await firstValueFrom(files('bob').list$())).toEqual([]);
  });

  it('are listed also if a crash came between the text and the list', async () => {
    const memory = inProcessMemory();
    let isDown = true;
    const crashing = (id: string): Memory => {
      const own = memory(id);
      return id.endsWith('index') && isDown
        ? {
            ...own,
            append$: () => {
              throw new Error('down');
            },
          }
        : own;
    };
    const files = filesInMemory({ memory: crashing });
    const write$ = files.write$('a', (before = '') => `${before}x`, 'k');
    await expect(lastValueFrom(write$)).rejects.toThrow('down');
    isDown = false;
    await lastValueFrom(write$);
    expect(await firstValueFrom(files.list$())).toEqual(['a']);
    expect(await firstValueFrom(files.read$('a'))).toBe('x');
  });

  it.each([
    ['in this process', inProcessMemory()],
    ['in a store of files', store.memory],
  ])('keep the last version only, %s', async (_, memory) => {
    const id = nextId();
    const files = filesInMemory({ memory, id });
    const all = () => lastValueFrom(memory(`${id}/file/a`).all$?.() ?? of(undefined));
    const texts = async () =>
      (await all())?.entries.map(({ message }) => textOf(message).split('\n')[1]);
    for (let n = 0; n < 20; n += 1) await lastValueFrom(files.write$('a', `text ${n}`, `k${n}`));
    expect(await texts()).toEqual(['text 19']);
    const edits = Array.from({ length: 9 }, (_it, n) =>
      files.write$('a', (before = '') => `${before}${n}`, `e${n}`),
    );
    await lastValueFrom(forkJoin(edits));
    expect(await texts()).toHaveLength(1);
    // Keys are still known.
    await lastValueFrom(files.write$('a', 'again', 'k19'));
    expect(await firstValueFrom(files.read$('a'))).toMatch(/^text 19\d{9}$/u);
  });

  it('remove what a crash has left, after the next write', async () => {
    const memory = inProcessMemory();
    let isDown = true;
    const crashing = (id: string): Memory => ({
      ...memory(id),
      ...(isDown && { remove$: () => throwError(() => new Error('down')) }),
    });
    const files = filesInMemory({ memory: crashing });
    const count = async () =>
      (await lastValueFrom(memory('files/file/a').all$?.() ?? EMPTY)).entries.length;
    for (const key of ['k1', 'k2', 'k3']) await lastValueFrom(files.write$('a', key, key));
    expect(await count()).toBe(3);
    isDown = false;
    await lastValueFrom(files.write$('a', 'k4', 'k4'));
    expect([await count(), await firstValueFrom(files.read$('a'))]).toEqual([1, 'k4']);
  });

  it('know the keys of 256 writes, and no more', async () => {
    const files = filesInMemory();
    for (let n = 0; n <= 256; n += 1) await lastValueFrom(files.write$('a', `${n}`, `k${n}`));
    await lastValueFrom(files.write$('a', 'again', 'k1'));
    expect(await firstValueFrom(files.read$('a'))).toBe('256');
    await lastValueFrom(files.write$('a', 'again', 'k0'));
    expect(await firstValueFrom(files.read$('a'))).toBe('again');
  });

  it('work in a memory without branches', async () => {
    const memory = inProcessMemory();
    const files = filesInMemory({ memory: (id) => line(memory(id)) });
    await lastValueFrom(files.write$('a', 'x', 'k1'));
    await lastValueFrom(files.write$('a', 'y', 'k2'));
    expect(await firstValueFrom(files.read$('a'))).toBe('y');
  });

  it('refuse options that are not valid', () => {
    expect(() => filesInMemory({ id: 5 as never })).toThrow("'id' must be a string");
    expect(() => filesInMemory({ maxBytes: 0 })).toThrow("'maxBytes'");
    expect(() => filesInMemory({ memory: of() as never })).toThrow("'memory'");
  });
});

describe('T25: a path', () => {
  it('is below the root and in one form, for any string', () => {
    const part = fc.oneof(
      fc.constantFrom('..', '.', '', '\\', '\0', 'a', 'e\u0301', '%2e%2e', '\ud800', 'C:'),
      fc.string({ unit: 'binary' }),
    );
    fc.assert(
      fc.property(
        fc.array(part).map((parts) => parts.join('/')),
        (given) => {
          let path: string;
          try {
            path = toPath(given);
          } catch {
            return;
          }
          expect(toPath(path)).toBe(path);
          expect(join('/root', path).startsWith('/root/')).toBe(true);
          expect(path.split('/')).not.toContain('..');
        },
      ),
    );
  });

  it.each(badPaths)('%j is refused', (path) => {
    expect(() => toPath(path)).toThrow(/^The path .*\.$/u);
  });
});
