import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { build } from 'esbuild';

it('a bundle for browsers has nothing of Node in it', async () => {
  const bundled = async (platform: 'browser' | 'node'): Promise<string> => {
    const { outputFiles } = await build({
      stdin: {
        contents: "export { vendorModel } from '@millrace/wire';",
        resolveDir: join(import.meta.dirname, '..'),
      },
      external: ['@millrace/core', 'rxjs'],
      bundle: true,
      write: false,
      format: 'esm',
      platform,
    });
    return outputFiles.map(({ text }) => text).join('');
  };
  expect(await bundled('node')).toContain('getBuiltinModule');
  expect(await bundled('browser')).not.toMatch(/getBuiltinModule|node:|globalDispatcher/u);
});
