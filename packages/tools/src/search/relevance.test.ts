import { describe, expect, it } from '@jest/globals';
import { runTool } from '../run-tool.test-support.js';
import type { SearchDocument } from './document.js';
import { searchDocuments } from './search-documents.js';

const page = (path: string, ...lines: readonly string[]): SearchDocument => ({
  path,
  text: lines.join('\n'),
});

const code = (...lines: readonly string[]): string => ['```ts', ...lines, '```'].join('\n');

/** Documents as a project has them: a main page, a guide, a page of a package, decisions, a generated report. */
const documents = [
  page(
    'README.md',
    '# Millrace',
    'Agents as streams. A mill race is the channel that carries water to the wheel and away again.',
    '## Start',
    'With Node 20 or newer and npm, in a clone: `npm start`. It needs no key, for its model is no language model.',
    '## The idea',
    '| what | is |\n| --- | --- |\n| an interceptor | an operator on one event |\n| an agent | an operator on messages |',
    '## What is there, and what is not yet',
    'The agent and a model without a network are there. A real one comes later.',
  ),
  page(
    'docs/guide.md',
    '# Guide',
    '## Tools',
    code(...Array.from({ length: 12 }, (_, n) => `agent${n}.interceptor(stop); // agent, stop`)),
    'A tool is a function.',
    '## Interceptors',
    'An operator on one event; it edits, delays or vetoes.',
    code('const agent = createAgent({ interceptors: [on(event, operator)] });'),
    '## Stopping',
    'Unsubscribe, or emit on `interruptOn`: the partial answer is kept.',
    '## Backpressure',
    'A slow reader slows the model.',
    '## Testing your agent',
    'Give it a scripted model: it answers what you wrote, and fails at any request that you did not expect.',
    code('const agent = createAgent({ model: scriptedModel() });', 'await agent.call();'),
  ),
  page(
    'packages/cli/README.md',
    '# millrace',
    'The command: ask an agent in the terminal, with or without backpressure.',
    '## Options',
    '`--quiet` prints the answer only. You need no key.',
  ),
  page(
    'DECISIONS.md',
    '# Decisions',
    '## What an interceptor hands back is checked',
    'An interceptor may hand back anything, so the agent checks what an interceptor gives, and stops.',
  ),
  page(
    'core.api.md',
    '# API Report',
    code(
      ...Array.from({ length: 400 }, (_, n) => `stop agent interceptor test backpressure ${n};`),
    ),
  ),
];

const tool = searchDocuments({ load: () => documents });

const first = async (query: string): Promise<string> =>
  (await runTool(tool, { query })).text.split('\n\n')[1]?.split(' (')[0] ?? '';

describe('searchDocuments, of questions as people ask them', () => {
  it.each([
    ['which node version do i need', '1. README.md:3 › Millrace › Start'],
    ['how do i stop an agent', '› Guide › Stopping'],
    ['what is an interceptor', '› Guide › Interceptors'],
    ['how can i test without a real model', '› Guide › Testing your agent'],
    ['why is it called millrace', '1. README.md:1 › Millrace'],
    ['backpressure', '› Guide › Backpressure'],
  ])('finds for %s: %s', async (query, place) => {
    expect(await first(query)).toMatch(new RegExp(`${place.replaceAll('.', '\\.')}$`, 'u'));
  });
});
