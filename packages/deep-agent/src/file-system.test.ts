import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { inProcessMemory, type Memory } from 'millrace';
import { openFiles } from '@millrace/store';
import fc from 'fast-check';
import { firstValueFrom, lastValueFrom, of } from 'rxjs';
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
