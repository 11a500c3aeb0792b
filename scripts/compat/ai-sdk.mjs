import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import { root } from '../workspaces.mjs';
import { executable } from './node.mjs';

export const name = 'ai-sdk';
export const goal =
  'models of the current provider packages of the AI SDK, which need Node 22, run an agent with tools';

export const dependencies = {
  '@ai-sdk/amazon-bedrock': '5.0.101',
  '@ai-sdk/anthropic': '4.0.105',
  '@ai-sdk/cohere': '4.0.52',
  '@ai-sdk/google': '4.0.121',
  '@ai-sdk/mistral': '4.0.87',
  '@ai-sdk/openai': '4.0.118',
};

/** The wire format of each vendor, and how to create its model. */
const vendors = {
  'amazon-bedrock': [
    'converse',
    `createAmazonBedrock({ ...key, baseURL, region: 'us-east-1' })('anthropic.claude-sonnet-4-5-20250929-v1:0')`,
  ],
  anthropic: ['claude', `createAnthropic({ ...key, baseURL })('claude-sonnet-4-5')`],
  cohere: ['cohereChat', `createCohere({ ...key, baseURL })('command-a-reasoning-08-2025')`],
  google: ['gemini', `createGoogleGenerativeAI({ ...key, baseURL })('gemini-2.5-flash')`],
  mistral: ['mistralChat', `createMistral({ ...key, baseURL })('magistral-medium-latest')`],
  openai: ['responses', `createOpenAI({ ...key, baseURL }).responses('gpt-5-mini')`],
};

const support = (file) => pathToFileURL(join(root, 'packages/ai-sdk/dist', file)).href;

const program = ([vendor, [wire, made]]) => `
import { deepStrictEqual } from 'node:assert/strict';
import { aiSdkModel } from '@millrace/ai-sdk';
import { ${made.slice(0, made.indexOf('('))} } from '@ai-sdk/${vendor}';
import { createAgent, textOf, tool } from 'millrace';
import { z } from 'zod';
import { answering, cutting, serve } from '${support('serve.test-support.js')}';
import { ${wire} as wire } from '${support('wires.test-support.js')}';

const key = { apiKey: 'test' };
const create = (baseURL) => aiSdkModel(${made}, { retry: false });
const weather = tool({
  name: 'weather',
  description: 'Returns the weather.',
  input: z.object({ city: z.string() }),
  run: ({ city }) => \`Snow in \${city}.\`,
});
const calls = ['Oslo', 'Rome'].map((city, index) => ({ id: \`call_\${index}\`, name: 'weather', json: ['{"city":', \`"\${city}"}\`] }));
const vendor = await serve(answering(wire, { calls }), answering(wire, { text: ['It ', 'snows.'] }));
const reply = await createAgent({ model: create(vendor.url), tools: [weather] }).call('Weather?');
deepStrictEqual([textOf(reply), ...reply.toolCalls.map((it) => it.output)], ['It snows.', 'Snow in Oslo.', 'Snow in Rome.']);
const broken = await serve(cutting(wire, { text: ['Half'] }));
const failed = createAgent({ model: create(broken.url) }).call('Weather?');
deepStrictEqual(await failed.catch(({ code }) => code), 'invalidResponse');
await Promise.all([vendor.close(), broken.close()]);
`;

export async function rows({ write, run }) {
  const { path, why } = await executable(22);
  const results = [];
  for (const entry of Object.entries(vendors)) {
    const [vendor] = entry;
    const row = {
      what: `@ai-sdk/${vendor} ${dependencies[`@ai-sdk/${vendor}`]} runs tools, and reports a cut answer`,
    };
    if (path === undefined) results.push({ ...row, skipped: why });
    else {
      const file = `ai-sdk-${vendor}.mjs`;
      write(file, program(entry));
      const { code, output } = await run(path, [file]);
      results.push({ ...row, problem: code === 0 ? undefined : output });
    }
  }
  return results;
}
