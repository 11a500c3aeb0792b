import { createContext, runInContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';

const bundled = async (contents: string): Promise<string> => {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    logLevel: 'silent',
  });
  return outputFiles.map(({ text }) => text).join('');
};

describe('millrace in a bundle for browsers', () => {
  it('has nothing of Node in it, and reports it if a program opens files', async () => {
    const program = `
      import { createAgent, openFiles } from 'millrace';
      globalThis.agent = createAgent;
      try { openFiles('kept'); } catch (error) { globalThis.message = error.message; }
    `;
    const code = await bundled(program);
    expect(code).not.toMatch(/node:/u);
    const { AbortController } = globalThis;
    const context = createContext({ AbortController });
    runInContext(code, context);
    expect([typeof context['agent'], context['message']]).toEqual([
      'function',
      'openFiles() needs the file system of Node.',
    ]);
  });
});
