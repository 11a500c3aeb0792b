import { createHook } from 'node:async_hooks';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { context } from '@opentelemetry/api';
import { createAgent, tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { contextManager, play, type Variant, variants } from './async-context.test-support.js';
import { kernelWaits } from './kernel-waits.test-support.js';
import { packageWaits } from './package-waits.test-support.js';
import { places } from './waits.test-data.js';
import { stop } from './waits.test-support.js';

const names = Object.keys(variants).filter((name): name is Variant => name in variants);
const waits = [...kernelWaits, ...packageWaits];

beforeAll(() => void context.setGlobalContextManager(contextManager.enable()));
afterAll(() => {
  stop();
  context.disable();
});

describe.each(names)('three users share what waits, %s', (variant) => {
  it.each(waits)('I21: $name', async (wait) => {
    expect(await play(wait, variant)).toEqual([]);
  });
});

const packages = join(import.meta.dirname, '../packages');
const capture =
  /\b(?:restoreAsyncContext\(\)|(?:bind|in|deferIn|hold)AsyncContext(?:<\w+>)?\(|flattened\(|listen: hearInContext\b)/gu;

/** The number of places that capture an async context, by file. */
const captures = (): Readonly<Record<string, number>> =>
  Object.fromEntries(
    readdirSync(packages, { recursive: true, encoding: 'utf8' })
      .filter((path) => /^[^/]+\/src\/.*(?<!\.test|\.d)\.ts$/u.test(path))
      .filter(
        (path) => !/\/flow\/async-(?:context|scope)\.ts$|^millrace\/src\/testing\//u.test(path),
      )
      .map((path) => [path, readFileSync(join(packages, path), 'utf8').match(capture)?.length ?? 0])
      .filter(([, count]) => count !== 0),
  );

describe('places that keep the async context', () => {
  it('each have a test that fails without them', () => {
    const counts = Object.entries(places).map(([path, tests]) => [path, tests.length]);
    expect(captures()).toEqual(Object.fromEntries(counts));
    const known = waits.map(({ name }) => name);
    const unknown = Object.values(places)
      .flat()
      .filter((test) => !test.endsWith('.test.ts') && !known.includes(test));
    expect(unknown).toEqual([]);
  });
});

describe('what it costs', () => {
  it('captures four times for a call with one tool, and once for each further tool call', async () => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'A mill.' });
    const capturesOf = async (tools: number): Promise<number> => {
      const calls = Array.from({ length: tools }, (_, at) => toolCall('look', {}, `${at}`));
      const agent = createAgent({ model: scriptedModel(calls, [text('Yes.')]), tools: [look] });
      let count = 0;
      const hook = createHook({ init: (_, type) => void (count += type === 'Millrace' ? 1 : 0) });
      hook.enable();
      try {
        await agent.call('?');
      } finally {
        hook.disable();
      }
      return count;
    };
    expect(await capturesOf(1)).toBe(4);
    expect(await capturesOf(16)).toBe(4 + 15);
  });
});
