import { existsSync, mkdtempSync } from 'node:fs';
import { mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { makePrivate } from './make-private.js';

const root = mkdtempSync(join(tmpdir(), 'millrace-place-'));
afterAll(() => rm(root, { recursive: true }));

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

describe('makePrivate', () => {
  it('makes what is missing, for this user alone', async () => {
    await makePrivate(join(root, 'a', 'b'));
    expect([await modeOf(join(root, 'a')), await modeOf(join(root, 'a', 'b'))]).toEqual([
      0o700, 0o700,
    ]);
  });

  it('leaves existing files as they are, also those of a link, and when two processes write at the same time', async () => {
    await mkdir(join(root, 'open'), { mode: 0o755 });
    await symlink(join(root, 'open'), join(root, 'link'));
    await makePrivate(join(root, 'link'));
    expect(await modeOf(join(root, 'open'))).toBe(0o755);
    const wanted = join(root, 'two', 'of', 'them');
    await Promise.all([makePrivate(wanted), makePrivate(wanted), makePrivate(wanted)]);
    expect(existsSync(wanted)).toBe(true);
  });

  it('S6: says why it cannot be made, where, and what to do', async () => {
    await writeFile(join(root, 'file'), '');
    await symlink(join(root, 'nowhere'), join(root, 'dangling'));
    const places = [
      [join(root, 'file'), 'a file has this name'],
      [join(root, 'file', 'below', 'it'), 'a part of its path is a file'],
      ['\0', 'null bytes'],
    ] as const;
    for (const [place, why] of places) {
      const refused = expect(makePrivate(place)).rejects;
      await refused.toMatchObject({ code: 'store', message: expect.stringContaining(why) });
      const fix = `Runs cannot be recorded in ${place}: `;
      await expect(makePrivate(place)).rejects.toThrow(fix);
      await expect(makePrivate(place)).rejects.toThrow(/--store or MILLRACE_STORE.*--no-store\.$/u);
    }
    await expect(makePrivate(join(root, 'dangling'))).rejects.toMatchObject({ code: 'store' });
  });

  const isLinux = existsSync('/proc/self');
  (isLinux ? it : it.skip)('S6: does not try for ever where the system makes nothing', async () => {
    const place = '/proc/millrace/runs';
    const why = `Runs cannot be recorded in ${place}: the directory cannot be created. `;
    await expect(makePrivate(place)).rejects.toThrow(why);
  });
});
