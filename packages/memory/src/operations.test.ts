import { describe, expect, it } from '@jest/globals';
import { createAgent } from '@millrace/core';
import {
  inProcessLongTermMemory,
  type LongTermMemory,
  type MemoryScope,
} from '@millrace/core/long-term-memory';
import { scriptedModel, text } from '@millrace/core/testing';
import fc from 'fast-check';
import { defer, lastValueFrom, throwError } from 'rxjs';
import { extractMemories } from './index.js';
import { ann, bob, done, heldOf, operations } from './memories.test-support.js';

const cities = ['Oslo', 'Rome', 'Lima', 'Graz'];

/** Operations as a model that was tricked, is confused or answers twice might write them. */
const anyOperation = fc.record(
  {
    op: fc.constantFrom('add', 'add', 'update', 'update', 'forget', 'none', 'drop'),
    id: fc.constantFrom('f1', 'f2', 'f3', 'f99', '__proto__', 'fact/1'),
    text: fc.oneof(
      fc.constantFrom(...cities.map((city) => `Lives in ${city}.`)),
      fc.constantFrom('lives in oslo', ' Likes  tea. ', 'x'.repeat(5_000), ''),
    ),
    subject: fc.constantFrom('user', 'User ', 'sister', ''),
    attribute: fc.constantFrom('home', 'HOME', 'taste: tea', ''),
    sources: fc.array(fc.constantFrom('m1', 'm2', 'm3', 'm9'), { maxLength: 3 }),
    quote: fc.constantFrom('I am in', 'and Oslo or Rome', 'Noted', ''),
    expiresInDays: fc.constantFrom(-1, 1, 1e300),
  },
  { requiredKeys: ['op'] },
);

const anyBatches = fc.array(
  fc.record({
    userId: fc.constantFrom('ann', 'bob'),
    list: fc.array(anyOperation, { maxLength: 8 }),
    /** The number of writes after which the process ends. */
    writes: fc.option(fc.nat({ max: 5 }), { nil: Infinity }),
  }),
  { minLength: 1, maxLength: 6 },
);

const asked = 'I am in Lima and Oslo or Rome or Graz, with tea.';

describe('G7: operations of any kind', () => {
  it('leave one current fact per chain, for each user apart, and the same if they are applied twice', async () => {
    await fc.assert(
      fc.asyncProperty(anyBatches, async (batches) => {
        const inner = inProcessLongTermMemory();
        for (const { userId, list, writes } of batches) {
          const other = userId === 'ann' ? bob : ann;
          const before = await heldOf(inner, other);
          const crashing = endingAfter(inner, writes);
          const first = extractMemories({
            model: scriptedModel(operations(...list)),
            memory: crashing.memory,
          });
          const agent = createAgent({ model: scriptedModel([text('Noted.')]), use: [first] });
          await agent.call(asked, { metadata: { userId } });
          await done(first.flush$());
          await expectConsistent(inner, userId);
          const written = await heldOf(inner, { userId });
          const model = scriptedModel(() => operations(...list.filter(({ op }) => op === 'add')));
          const again = extractMemories({ model, memory: inner });
          await done(again.flush$({ userId }));
          await expectConsistent(inner, userId);
          if (crashing.hasWritten()) expect(await heldOf(inner, { userId })).toEqual(written);
          expect(await heldOf(inner, other)).toEqual(before);
        }
      }),
      { numRuns: 360 },
    );
  });
});

const expectConsistent = async (memory: LongTermMemory, userId: string): Promise<void> => {
  const entries = await lastValueFrom(memory.recall$({ userId }, { text: '', limit: 1_000 }));
  const chains = entries.map(({ metadata }) => metadata['chain']);
  expect(new Set(chains).size).toBe(chains.length);
  expect(entries.filter((it) => it.text.length > 300 || it.kind !== 'fact')).toEqual([]);
};

/** A memory of a process that ends after a number of writes, of which the last removes the turn. */
const endingAfter = (memory: LongTermMemory, writes: number) => {
  const state = { left: writes, hasWritten: false };
  const isWaiting = (scope: MemoryScope): boolean => scope.sessionId === 'millrace:waiting';
  const end = () => throwError(() => new Error('The process has ended.'));
  const crashing: LongTermMemory = {
    ...memory,
    record$: (scope, entries) =>
      defer(() => {
        if (!isWaiting(scope) && (state.left -= 1) < 0) return end();
        return memory.record$(scope, entries);
      }),
    forget$: (scope, which) =>
      defer(() => {
        if (isWaiting(scope)) state.hasWritten ||= state.left >= 0;
        if ((state.left -= 1) < 0) return end();
        return memory.forget$(scope, which);
      }),
  };
  return { memory: crashing, hasWritten: () => state.hasWritten };
};
