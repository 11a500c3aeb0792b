import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { findWorkspace } from './find-workspace.js';

const root = process.cwd();

describe('findWorkspace', () => {
  it.each([root, join(root, 'packages/cli/src'), tmpdir(), '/'])(
    'finds it from %s: above that, else above this package',
    async (directory) => {
      expect(await findWorkspace(directory)).toBe(root);
    },
  );
});
