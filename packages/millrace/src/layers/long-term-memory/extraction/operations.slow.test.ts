import { describe, expect, it } from '@jest/globals';
import { createAgent } from '../../../index.js';
import {
  inProcessLongTermMemory,
  type LongTermMemory,
  type MemoryScope,
  extractMemories,
} from '../index.js';
import { scriptedModel, text } from '../../../testing/index.js';
import fc from 'fast-check';
import { concat, defer, lastValueFrom, throwError } from 'rxjs';
import {
  add,
  ann,
  bob,
  done,
  forAnn,
  heldOf,
  operations,
  shownIn,
} from './memories.test-support.js';

const cities = ['Oslo', 'Rome', 'Lima', 'Graz'];

const knownFacts = [
  { text: 'Lives in Rome.', metadata: { attribute: 'home', chain: '["user","home"]' } },
  { text: 'Lives in Oslo.', metadata: {} },
  { text: 'Has a cat.', metadata: {} },
  { text: 'Likes tea.', metadata: {} },
];

/** Ids as models give them: known ones, the next number, and others that they never saw. */
const anyId = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 4 }).map((at) => `f${at}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', '1', 'f0', 'F1', 'f99', 'm1', 'fact/1', '__proto__'),
  },
);

const anyText = fc.oneof(
  fc.constantFrom(...cities.map((city) => `Lives in ${city}.`)),
  fc.constantFrom('lives in oslo', 'Has a cat.', ' Likes  tea. ', 'x'.repeat(5_000), ''),
);

/** Operations as a model that was tricked, is confused or answers twice might write them. */
const anyOperation = fc.record(
  {
    op: fc.constantFrom('add', 'add', 'update', 'update', 'forget', 'none', 'drop'),
    id: anyId,
    text: anyText,
    subject: fc.constantFrom('user', 'User ', 'sister', ''),
    attribute: fc.constantFrom('home', 'HOME', 'taste: tea', ''),
    sources: fc.array(fc.constantFrom('m1', 'm2', 'm3', 'm9'), { maxLength: 3 }),
    quote: fc.constantFrom('I am in', 'and Oslo or Rome', 'Noted', ''),
    expiresInDays: fc.constantFrom(-1, 1, 1e300),
  },
  { requiredKeys: ['op'] },
);

/** Operations that the user has stated: those that are applied. */
const anyStated = fc.tuple(anyOperation, anyId, anyText).map(([operation, id, fact]) => ({
  ...{ ...operation, id, text: fact },
  sources: ['m1' as const],
  quote: 'I am in' as const,
}));

const anyBatches = fc.array(
  fc.record({
    userId: fc.constantFrom('ann', 'bob'),
    list: fc.array(anyOperation, { maxLength: 8 }),
    /** The number of writes after which the process ends. */
    writes: fc.option(fc.nat({ max: 5 }), { nil: Infinity }),
  }),
  { minLength: 1, maxLength: 6 },
);

const asked =
  'I am in Lima and Oslo or Rome or Graz, with tea and a cat. ' +
  'Forget that I am in Lima or Oslo or Rome or Graz, with tea and a cat.';

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
      {
        numRuns: 360,
        examples: [
          // An operation that adds a fact with the number of a known one.
          [
            [
              { userId: 'ann', list: [addition('lives in oslo')], writes: Infinity },
              { userId: 'ann', list: [{ ...addition('Lives in Lima.'), id: 'f2' }], writes: 1 },
            ],
          ],
        ],
      },
    );
  });

  it('replace and forget only facts that an update or a forget names by its shown id, or an attribute by its value', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.subarray(knownFacts, { minLength: 1 }),
        fc.array(anyStated, { maxLength: 6 }),
        async (of, list) => {
          const memory = inProcessLongTermMemory();
          await done(concat(memory.record$(ann, of), memory.record$(bob, of)));
          const before = await entriesOf(memory);
          const model = scriptedModel(operations(...list));
          const extraction = extractMemories({ model, memory });
          const agent = createAgent({ model: scriptedModel([text('Noted.')]), use: [extraction] });
          await agent.call(asked, { metadata: { userId: 'ann' } });
          await done(extraction.flush$());
          const held = (await entriesOf(memory)).map(({ id }) => id);
          const former = (await lastValueFrom(extraction.history$(ann))).map(({ id }) => id);
          const forgets = list.some(({ op }) => op === 'forget');
          for (const { id: name, text: it } of shownIn(model.requests[0]).facts) {
            const { id = '', metadata } = before.find((fact) => fact.text === it) ?? {};
            const isForgotten = list.at(-1)?.op === 'forget' && list.at(-1)?.id === name;
            if (isForgotten) expect([...held, ...former]).not.toContain(id);
            if (held.includes(id)) continue;
            const ending = list.filter((each) => mayEnd(each, name, metadata?.['attribute']));
            expect(ending).not.toEqual([]);
            if (!forgets) expect(former).toContain(id);
          }
          expect(await heldOf(memory, bob)).toHaveLength(of.length);
        },
      ),
      {
        numRuns: 360,
        examples: [
          // The numbers that a model gives to what it adds.
          [knownFacts, [{ ...addition('Lives in Lima.'), id: 'f1' }]],
          // A fact becomes the same as another known one, which stays if the first is changed again.
          [knownFacts, [merged, { ...merged, text: 'Lives in Lima.' }]],
          [knownFacts, [merged, { ...merged, op: 'forget' }]],
        ],
      },
    );
  });
});

const entriesOf = (memory: LongTermMemory) =>
  lastValueFrom(memory.recall$(ann, { text: '', limit: 1_000 }));

const addition = (fact: string) => ({
  op: 'add' as const,
  text: fact,
  sources: ['m1' as const],
  quote: 'I am in' as const,
});

const merged = { ...addition('Has a cat.'), op: 'update' as const, id: 'f1' };

const mayEnd = (
  operation: { readonly op: string; readonly id?: string; readonly attribute?: string },
  id: string,
  attribute: string | undefined,
): boolean =>
  (['update', 'forget'].includes(operation.op) && operation.id === id) ||
  (['add', 'update'].includes(operation.op) &&
    attribute !== undefined &&
    operation.attribute?.toLowerCase() === attribute);

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

describe('X39: facts', () => {
  it('X39: are stored without invisible characters', async () => {
    const memory = inProcessLongTermMemory();
    const said = 'I live in Oslo.';
    const first = extractMemories({
      model: scriptedModel(operations(add('Li\u200bves in Oslo\u202e\u{e0041}.', said))),
      memory,
    });
    const agent = createAgent({ model: scriptedModel([text('Noted.')]), use: [first] });
    await agent.call(said, forAnn);
    await done(first.flush$());
    expect(await heldOf(memory)).toEqual(['Lives in Oslo.']);
  });
});
