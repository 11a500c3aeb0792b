import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { closure } from './closure.js';
import { folderBytes } from './folder-bytes.js';
import { sizeOfFolder } from './size-of-folder.js';
import { sizeOfPackages } from './size-of-packages.js';

let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'bench-install-')));
});
afterAll(() => rmSync(root, { recursive: true }));

/** A package with a file of 1,000 bytes. */
const pack = (path: string, manifest: object = {}): string => {
  const folder = join(root, path);
  mkdirSync(join(folder, 'lib'), { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'lib', 'file.js'), 'x'.repeat(1_000));
  return folder;
};

describe('what an install brings', () => {
  beforeAll(() => {
    pack('node_modules/a', {
      dependencies: { b: '1', '@s/c': '1' },
      optionalDependencies: { absent: '1' },
      peerDependencies: { p: '1', q: '1' },
      peerDependenciesMeta: { q: { optional: true } },
      devDependencies: { dev: '1' },
    });
    pack('node_modules/b', { dependencies: { a: '1', '@s/c': '2' } });
    pack('node_modules/b/node_modules/@s/c');
    for (const name of ['@s/c', 'p', 'q', 'dev']) pack(`node_modules/${name}`);
    mkdirSync(join(root, 'node_modules/.bin'));
    symlinkSync(join(root, 'node_modules/b'), join(root, 'node_modules/.bin/b'));
  });

  it('is all that packages need, each once, as Node finds it', () => {
    const paths = ['a', 'b', '@s/c', 'b/node_modules/@s/c', 'p'];
    const found = closure(['a'], join(root, 'packages', 'here'));
    expect([...found].toSorted()).toEqual(
      paths.map((path) => join(root, 'node_modules', path)).toSorted(),
    );
    expect(() => closure(['absent'], root)).toThrow(/absent is not installed/);
  });

  it('is measured without the packages within', () => {
    const manifest = '{"dependencies":{"a":"1","@s/c":"2"}}'.length;
    expect(folderBytes(join(root, 'node_modules/b'))).toBe(1_000 + manifest);
    expect(sizeOfPackages(['b'], root).packages).toBe(5);
    expect(sizeOfPackages(['p'], root)).toEqual({ bytes: 1_002, packages: 1 });
  });

  it('is counted in a folder, too', () => {
    const { bytes, packages } = sizeOfFolder(root);
    expect(packages).toBe(7);
    expect(bytes).toBeGreaterThan(7_000);
    expect(bytes).toBeLessThan(8_000);
    expect(sizeOfFolder(join(root, 'node_modules/p'))).toEqual({ bytes: 0, packages: 0 });
  });
});
