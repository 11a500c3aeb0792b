import { beforeAll, describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Printed, runAlone, runModules } from './run-modules.test-support.js';

const here = import.meta.dirname;
const examples = readdirSync(here)
  .filter((file) => /^\d\d-.*\.ts$/.test(file))
  .map((file) => file.replace(/\.ts$/, ''));

const programOf = (name: string): string => join(here, 'dist', `${name}.js`);
const expectedOf = (name: string): Printed => ({
  stdout: readFileSync(join(here, 'expected', `${name}.txt`), 'utf8'),
  stderr: '',
});

const frameworks = readdirSync(join(here, 'platforms')).filter((file) => file.endsWith('.ts'));

it.each(frameworks)('platforms/%s is short', (file) => {
  const source = readFileSync(join(here, 'platforms', file), 'utf8');
  expect(source.trimEnd().split('\n').length).toBeLessThan(40);
});

describe('every example', () => {
  let printedBy: (file: string) => Printed | undefined;
  beforeAll(async () => {
    printedBy = await runModules(examples.map(programOf));
  }, 240_000);

  it.each(examples)('%s is short, runs, and prints what it should', (name) => {
    const lines = readFileSync(join(here, `${name}.ts`), 'utf8')
      .trimEnd()
      .split('\n');
    expect(lines.length).toBeLessThanOrEqual(40);
    expect(printedBy(programOf(name))).toEqual(expectedOf(name));
  });

  it.each(['01-hello', '12-approval', '22-approval-over-a-restart'])(
    '%s runs in a process of its own',
    async (name) => {
      expect(await runAlone(programOf(name))).toEqual(expectedOf(name));
    },
    120_000,
  );
});
