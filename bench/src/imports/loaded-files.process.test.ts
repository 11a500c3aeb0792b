import { expect, it } from '@jest/globals';
import { filesLoaded } from './import-time.js';

const isOurs = (file: string): boolean =>
  /[/\\](packages|@millrace)[/\\](?!.*node_modules)/.test(file);
const isAjv = (file: string): boolean => /[/\\]node_modules[/\\]ajv[/\\]/.test(file);

// Look before you grow: core and wire are three files each, and openai shares two chunks with its other entries.
it.each([
  { names: ['millrace'], ours: 4 },
  { names: ['millrace', '@millrace/openai'], ours: 11 },
  { names: ['millrace', '@millrace/anthropic'], ours: 9 },
])('imports $names from no more than $ours files of ours, without ajv and SDKs', async (row) => {
  const files = await filesLoaded(row.names, process.execPath);
  expect(files.filter(isOurs).length).toBeLessThanOrEqual(row.ours);
  expect(files.filter(isOurs)).not.toEqual([]);
  expect(files.filter(isAjv)).toEqual([]);
  // RxJS, and a few files of small packages.
  const others = files.filter(
    (file) => !isOurs(file) && !/[/\\]node_modules[/\\]rxjs[/\\]/.test(file),
  );
  expect(others.length).toBeLessThanOrEqual(10);
});

it('loads ajv with what compiles JSON Schemas', async () => {
  const files = await filesLoaded(['millrace/schema'], process.execPath);
  expect(files.filter(isAjv)).not.toEqual([]);
});

it('rejects with the reason if there is nothing to import', async () => {
  const files = filesLoaded(['no-such-package'], process.execPath);
  await expect(files).rejects.toThrow(/Cannot find package 'no-such-package'/);
});
