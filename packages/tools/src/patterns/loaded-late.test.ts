import { expect, it, jest } from '@jest/globals';

it('X13: @millrace/tools does not load the engine, @millrace/tools/patterns does', async () => {
  const load = jest.fn(() => ({ RE2JS: {} }));
  jest.unstable_mockModule('re2js', load);
  await import('../index.js');
  expect(load).not.toHaveBeenCalled();
  await import('./index.js');
  expect(load).toHaveBeenCalledTimes(1);
});
