import { describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const here = import.meta.dirname;
const examples = readdirSync(here).filter((file) => /^\d\d-.*\.ts$/.test(file));

describe('every example', () => {
  it.each(examples)(
    '%s is short, runs, and prints what it should',
    async (file) => {
      const name = file.replace(/\.ts$/, '');
      const lines = readFileSync(join(here, file), 'utf8').trimEnd().split('\n');
      expect(lines.length).toBeLessThan(40);

      const program = join(here, 'dist', `${name}.js`);
      const { stdout, stderr } = await promisify(execFile)(process.execPath, [program], {
        timeout: 50_000,
      });
      expect(stderr).toBe('');
      expect(stdout).toBe(readFileSync(join(here, 'expected', `${name}.txt`), 'utf8'));
      // A database takes seconds to begin.
    },
    60_000,
  );
});
