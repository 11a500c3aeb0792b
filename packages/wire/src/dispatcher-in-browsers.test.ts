import { join } from 'node:path';
import { createContext, runInContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';

const bundled = async (platform: 'browser' | 'node'): Promise<string> => {
  const { outputFiles } = await build({
    stdin: {
      contents: `
        import { exchange$, resolveAccess, defaultCaps } from '@millrace/wire';
        import { openDemand } from 'millrace';
        import { asyncScheduler, lastValueFrom, toArray } from 'rxjs';

        const source = { vendor: 'Acme', keyVariables: ['ACME_KEY'], headersVariable: 'ACME_HEADERS' };
        const { secrets } = resolveAccess(
          { ...source, baseURL: 'https://acme.example', exampleUrl: 'https://acme.example' },
          { apiKey: 'sk-proj-1234567890abcdef' },
        );
        const stream = 'data: {"type":"text","text":"Hello"}\\n\\ndata: {"type":"finish","finish":"stop"}\\n\\n';
        const exchange = {
          vendor: 'Acme',
          secrets,
          caps: defaultCaps,
          fetch: () => Promise.resolve(new Response(stream)),
          request: () => ({ url: 'https://acme.example/v1', headers: {}, body: '{}' }),
          read: ({ data }) => [data],
          readWhole: () => [],
        };
        const context = { demand: openDemand, scheduler: asyncScheduler };
        globalThis.chunks = lastValueFrom(exchange$(exchange, context).pipe(toArray()));
      `,
      resolveDir: join(import.meta.dirname, '..'),
    },
    bundle: true,
    write: false,
    format: 'iife',
    platform,
  });
  return outputFiles.map(({ text }) => text).join('');
};

describe('a bundle for browsers', () => {
  it('has nothing of Node in it', async () => {
    expect(await bundled('node')).toContain('getBuiltinModule');
    expect(await bundled('browser')).not.toMatch(/getBuiltinModule|node:|globalDispatcher/u);
  });

  it('runs where only the globals of browsers exist', async () => {
    const { AbortController, Response, TextDecoder, TextEncoder, URL, btoa } = globalThis;
    const { clearInterval, performance, queueMicrotask, setInterval } = globalThis;
    const globals = { AbortController, Response, TextDecoder, TextEncoder, URL, btoa };
    const context = createContext({
      ...globals,
      ...{ clearInterval, performance, queueMicrotask, setInterval },
    });
    runInContext(await bundled('browser'), context);
    expect(JSON.stringify(await context['chunks'])).toBe(
      '[{"type":"text","text":"Hello"},{"type":"finish","finish":"stop"}]',
    );
  });
});
