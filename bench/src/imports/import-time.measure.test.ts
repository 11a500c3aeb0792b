import { expect, it } from '@jest/globals';
import { importTime } from './import-time.js';

it('measures an import in a process of its own', async () => {
  const { ms, cpuMs } = await importTime(['rxjs'], process.execPath);
  expect(ms).toBeGreaterThan(0);
  expect(cpuMs).toBeGreaterThan(0);
});

it('rejects with the reason if there is nothing to import', async () => {
  const time = importTime(['rxjs', 'no-such-package'], process.execPath);
  await expect(time).rejects.toThrow(/Cannot find package 'no-such-package'/);
});
