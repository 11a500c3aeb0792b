import { expect, it, jest } from '@jest/globals';

it('X13: @millrace/tools does not load the engine, @millrace/tools/patterns does', async () => {
  const load = jest.fn(() => ({ RE2JS: {} }));
  jest.unstable_mockModule('re2js', load);
  await import('../index.js');
  expect(load).not.toHaveBeenCalled();
  await import('./index.js');
  expect(load).toHaveBeenCalledTimes(1);
});

it('X13: no entry loads the libraries of another, and those of its own only on first use', async () => {
  const loaded: string[] = [];
  for (const name of ['undici', '@mdream/js', 'diff', 're2js', 'mathjs']) {
    jest.unstable_mockModule(name, () => {
      loaded.push(name);
      return {};
    });
  }
  jest.resetModules();
  const [web, files] = [await import('../web/index.js'), await import('../files/index.js')];
  await import('../index.js');
  web.fetchPage();
  files.fileTools({ approve: true });
  expect(loaded).toEqual([]);
});
