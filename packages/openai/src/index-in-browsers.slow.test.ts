import { createContext, runInContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { build } from 'esbuild';

/** An agent over the API of OpenAI, and one over a script. */
const program = `
  import { createAgent } from 'millrace';
  import { scriptedModel, text } from 'millrace/testing';
  import { openai } from '@millrace/openai';

  const answer = { choices: [{ delta: { content: 'From the vendor.' }, finish_reason: 'stop' }] };
  const body = 'data: ' + JSON.stringify(answer) + '\\n\\ndata: [DONE]\\n\\n';
  const fetch = () =>
    Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
  const models = [
    openai('local', { baseURL: 'https://models.example/v1', apiKey: 'sk-test-0123456789', fetch }),
    scriptedModel([text('From the script.')]),
  ];
  globalThis.texts = Promise.all(
    models.map((model) => createAgent({ model }).call('?').then((reply) => reply.text)),
  );
`;

const bundled = async (contents: string): Promise<string> => {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    logLevel: 'silent',
  });
  return outputFiles.map(({ text }) => text).join('');
};

describe('core, its testing tools and the adapter in a bundle for browsers', () => {
  it('X22: have nothing of Node in them, and run where only the globals of browsers exist', async () => {
    const code = await bundled(program);
    expect(code).not.toMatch(/globalDispatcher|getBuiltinModule\("node:/u);
    const { AbortController, AbortSignal, DOMException, Headers, Request, Response } = globalThis;
    const { ReadableStream, TextDecoder, TextEncoder, URL, btoa, crypto, performance } = globalThis;
    const { clearInterval, clearTimeout, queueMicrotask, setInterval, setTimeout } = globalThis;
    const context = createContext({
      ...{ AbortController, AbortSignal, DOMException, Headers, Request, Response },
      ...{ ReadableStream, TextDecoder, TextEncoder, URL, btoa, crypto, performance },
      ...{ clearInterval, clearTimeout, queueMicrotask, setInterval, setTimeout },
      structuredClone,
    });
    runInContext(code, context);
    expect(await context['texts']).toEqual(['From the vendor.', 'From the script.']);
  });
});
