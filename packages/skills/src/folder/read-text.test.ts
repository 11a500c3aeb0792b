import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { anchored, readText } from './read-text.js';

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'read-text-')));
  for (const place of ['skill/a/b', 'outside/b']) {
    mkdirSync(join(base, place), { recursive: true });
    writeFileSync(join(base, place, 'x.md'), place);
  }
});
afterEach(() => rmSync(base, { recursive: true }));

const { signal } = new AbortController();
const read = () => readText(join(base, 'skill/a/b/x.md'), 'x.md', 100, signal);
const replace = (place: string, target: string): void => {
  renameSync(join(base, place), join(base, 'moved'));
  symlinkSync(join(base, target), join(base, place));
};

it.each([
  ['skill/a/b/x.md', 'outside/b/x.md'],
  ['skill/a/b', 'outside/b'],
  ['skill/a', 'outside'],
])(
  'X17: reads nothing outside if %s is replaced by a link after its path was checked',
  async (place, target) => {
    expect(await read()).toBe('skill/a/b');
    replace(place, target);
    await expect(read()).rejects.toThrow();
  },
);

it('X17: lists nothing outside if a folder above is replaced by a link', async () => {
  replace('skill/a', 'outside');
  await expect(anchored(join(base, 'skill/a/b'), () => Promise.resolve())).rejects.toThrow(
    'A folder was replaced in the meantime',
  );
});
