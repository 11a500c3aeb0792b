import { describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';

/** The files of core that a program keeps after unused code is left out. */
const keptBy = async (contents: string): Promise<readonly string[]> => {
  const { metafile } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    absWorkingDir: import.meta.dirname,
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    external: ['rxjs', 'ajv'],
    logLevel: 'silent',
  });
  return Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.keys(inputs).filter((file) => (inputs[file]?.bytesInOutput ?? 0) > 0),
  );
};

const features = /^(?:layers|journal|memories|operators|schema|testing)\//;

describe('a program that uses no layer', () => {
  it('Y5: bundles none, and so runs none', async () => {
    const kept = await keptBy(`export { createAgent, tool } from './index.js'`);
    expect(kept).toContain('loop.ts');
    expect(kept.filter((file) => features.test(file))).toEqual([]);
  });

  it('Y5: bundles the layer that it uses, and no other', async () => {
    const kept = await keptBy(`export { createAgent, tool, approval } from './index.js'`);
    expect(kept.filter((file) => features.test(file))).toEqual(['layers/approval.ts']);
  });
});
