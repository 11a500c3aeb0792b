import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { concat, defer, ignoreElements, lastValueFrom, of, throwError } from 'rxjs';
import type { Embedder } from '../../index.js';
import { longTermMemoryContract, marbles } from '../../testing/index.js';
import { inProcessLongTermMemory, type LongTermMemory, type MemoryScope } from './index.js';
import type { InProcessLongTermMemoryOptions } from './in-process-long-term-memory.js';

const ann: MemoryScope = { userId: 'ann' };
const make = (options?: InProcessLongTermMemoryOptions): LongTermMemory =>
  inProcessLongTermMemory(options);

const add = (memory: LongTermMemory, ...texts: readonly string[]): void => {
  memory
    .record$(
      ann,
      texts.map((text) => ({ text })),
    )
    .subscribe();
};

/** What a synchronous memory finds. */
const found = (memory: LongTermMemory, text: string, limit = 100, scope = ann): string[] => {
  const texts: string[] = [];
  memory
    .recall$(scope, { text, limit })
    .subscribe((entries) => texts.push(...entries.map((entry) => entry.text)));
  return texts;
};

/** Things that are called by several words. */
const meanings = [
  ['car', 'automobile', 'vehicle'],
  ['tea', 'infusion', 'brew'],
  ['town', 'city', 'oslo'],
];
const embedder: Embedder = {
  embed$: (texts) =>
    of(
      texts.map((text) =>
        meanings.map((group) => group.filter((word) => text.toLowerCase().includes(word)).length),
      ),
    ),
};

describe('inProcessLongTermMemory', () => {
  for (const { name, run } of longTermMemoryContract(() => make())) it(`G3: ${name}`, run);
  for (const { name, run } of longTermMemoryContract(() => make({ embedder }))) {
    it(`G3: by meaning, too: ${name}`, run);
  }

  it('G3: ranks by BM25: rare words and short entries count more', () => {
    const memory = make();
    add(memory, 'tea tea tea tea', 'tea and milk', 'milk', 'tea and a very long story about mills');
    expect(found(memory, 'milk tea')[0]).toBe('tea and milk');
    expect(found(memory, 'tea')).toEqual([
      'tea tea tea tea',
      'tea and milk',
      'tea and a very long story about mills',
    ]);
    expect(found(memory, 'is it the?')).toEqual([]);
    expect(found(memory, 'MILKS')).toEqual(['milk', 'tea and milk']);
  });

  it('G3: of equals, the newest comes first, and each time the same', () => {
    const memory = make({ clock: { now: () => 5 } });
    add(memory, 'tea one', 'tea two', 'tea three');
    const first = found(memory, 'tea', 2);
    expect(first).toEqual(['tea three', 'tea two']);
    expect(found(memory, 'tea', 2)).toEqual(first);
    expect(found(memory, '')).toEqual(['tea three', 'tea two', 'tea one']);
  });

  it('G3: finds by meaning what shares no word, and puts first what both find', () => {
    const memory = make({ embedder });
    add(memory, 'Owns an automobile.', 'Likes a brew.', 'Drinks an infusion of tea.');
    expect(found(memory, 'which vehicle')).toEqual(['Owns an automobile.']);
    expect(found(memory, 'tea')[0]).toBe('Drinks an infusion of tea.');
    expect(found(memory, 'tea')).toHaveLength(2);
    expect(found(make({ embedder, threshold: 1.1 }), 'vehicle')).toEqual([]);
  });

  it('G3: has each vector made once, and reports an embedder that fails', () => {
    const asked: string[] = [];
    let isDown = false;
    const memory = make({
      embedder: {
        embed$: (texts) =>
          defer(() => {
            asked.push(...texts);
            return isDown ? throwError(() => new Error('away')) : embedder.embed$(texts);
          }),
      },
    });
    add(memory, 'tea', 'car');
    found(memory, 'city');
    found(memory, 'town');
    expect(asked).toEqual(['city', 'tea', 'car', 'town']);
    isDown = true;
    const warnings: string[] = [];
    const query = { text: 'tea', report: (warning: string) => warnings.push(warning) };
    let texts: readonly string[] = [];
    memory.recall$(ann, query).subscribe((entries) => {
      texts = entries.map(({ text }) => text);
    });
    expect(texts).toEqual(['tea']);
    expect(warnings).toEqual([
      'The search by meaning failed, so only keywords were searched: away',
    ]);
  });

  it('G3: shows nothing that was forgotten while vectors were made', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const vectors$ = cold('--(v|)', { v: [[1]] });
      const memory = make({ embedder: { embed$: () => vectors$ } });
      add(memory, 'tea');
      expectObservable(memory.recall$(ann, { text: 'tea' })).toBe('----(e|)', { e: [] });
      const forgotten$ = cold('---(x|)').pipe(ignoreElements());
      expectObservable(concat(forgotten$, memory.forget$(ann, 'all'))).toBe('---(n|)', { n: 1 });
      expectSubscriptions(vectors$.subscriptions).toBe(['^-!', '--^-!']);
    });
  });

  it('I5: leaves the embedder in the tick in which it is left', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const vectors$ = cold('-----(v|)', { v: [[1]] });
      const memory = make({ embedder: { embed$: () => vectors$ } });
      add(memory, 'tea');
      expectObservable(memory.recall$(ann, { text: 'tea' }), '^--!').toBe('---');
      expectSubscriptions(vectors$.subscriptions).toBe('^--!');
    });
  });

  it('G3: holds so many entries a scope; what was of use longest ago goes', () => {
    const memory = make({ maxEntries: 3 });
    add(memory, 'tea', 'milk', 'car');
    found(memory, 'tea');
    add(memory, 'MILK ');
    add(memory, 'oslo');
    expect(found(memory, '').sort()).toEqual(['milk', 'oslo', 'tea']);
    expect(found(memory, 'car')).toEqual([]);
    memory.record$({ userId: 'ann', sessionId: 's' }, [{ text: 'own' }]).subscribe();
    expect(found(memory, '', 9, { userId: 'ann', sessionId: 's' })).toHaveLength(4);
  });

  it('G3: holds so many scopes; the one that was asked about longest ago goes', () => {
    const memory = make({ maxScopes: 2 });
    add(memory, 'tea');
    memory.record$({ userId: 'bob' }, [{ text: 'milk' }]).subscribe();
    found(memory, 'tea');
    memory.record$({ userId: 'cid' }, [{ text: 'car' }]).subscribe();
    expect(found(memory, '')).toEqual(['tea']);
    expect(found(memory, '', 9, { userId: 'bob' })).toEqual([]);
  });

  it('X19: gives out frozen entries', async () => {
    const memory = make();
    const [kept] = await lastValueFrom(memory.record$(ann, [{ text: 'tea' }]));
    const [recalled] = await lastValueFrom(memory.recall$(ann, { text: 'tea' }));
    for (const it of [kept, kept?.scope, kept?.metadata, recalled]) {
      expect(Object.isFrozen(it)).toBe(true);
    }
  });

  it.each([
    [{ embedder: {} }, /'embedder' must be/],
    [{ maxEntries: 0 }, /'maxEntries' must be/],
    [{ max: 1 }, /has no option 'max'/],
  ])('G3: refuses the options %j', (options, message) => {
    expect(() => make(options as never)).toThrow(message);
  });

  it.each([
    [{ text: 1 }, /'text' must be a string/],
    [{ text: 'a', id: '' }, /'id' must be/],
    [{ text: 'a', metadata: { a: 1 } }, /'metadata' must be an object with string values/],
    [{ text: 'a', scope: ann }, /has no option 'scope'/],
  ])('G3: refuses to record %j, and all that is beside it', async (memory, message) => {
    const given = [{ text: 'tea' }, memory as never];
    const own = make();
    await expect(lastValueFrom(own.record$(ann, given))).rejects.toThrow(message);
    expect(found(own, '')).toEqual([]);
  });

  const scopes: readonly MemoryScope[] = [
    ann,
    { userId: 'bob' },
    { userId: 'ann', sessionId: 's' },
    { userId: 'bob', sessionId: 's' },
  ];
  const step = fc.record({
    scope: fc.constantFrom(...scopes),
    does: fc.constantFrom('record', 'record', 'recall', 'forget', 'clear'),
    word: fc.constantFrom('tea', 'milk', 'car', '水車', ''),
  });

  it('G3: what is found in a scope is of it, is there, and holds the word, no matter what happens', () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 1, max: 4 }),
        (steps, max) => {
          const memory = make({ maxEntries: max });
          const forgotten = new Set<string>();
          steps.forEach(({ scope, does, word }, nth) => {
            if (does === 'record') {
              const id = `${nth}`;
              const text = `${word} ${nth} ${scope.userId} ${scope.sessionId ?? ''}`;
              memory.record$(scope, [{ id, text, createdAt: nth }]).subscribe();
            }
            let ids: readonly string[] = [];
            if (does === 'clear') memory.forget$(scope, 'all').subscribe();
            memory.recall$(scope, { text: word, limit: 9 }).subscribe((entries) => {
              expect(entries.length).toBeLessThanOrEqual(max * 2);
              for (const { id, text, scope: of } of entries) {
                expect(of.userId).toBe(scope.userId);
                if (of.sessionId !== undefined) expect(of.sessionId).toBe(scope.sessionId);
                expect(text).toContain(word);
                expect(forgotten.has(id)).toBe(false);
              }
              ids = entries.map(({ id }) => id);
            });
            if (does !== 'forget') return;
            memory.forget$(scope, ids).subscribe((count) => expect(count).toBe(ids.length));
            ids.forEach((id) => forgotten.add(id));
          });
        },
      ),
    );
  });

  it('G3: finds its way through 10,000 entries', () => {
    const memory = make();
    const before = process.cpuUsage();
    const texts = Array.from(
      { length: 10_000 },
      (_, n) =>
        `The user has said that parcel ${n} goes to street ${n % 97} by the mill 水車${n % 13}.`,
    );
    add(memory, ...texts);
    const recorded = process.cpuUsage(before).user;
    expect(found(memory, 'where does parcel 4711 go to?', 3)[0]).toBe(texts[4711]);
    const recalled = process.cpuUsage(before).user - recorded;
    expect(recorded / 1_000).toBeLessThan(4_000);
    expect(recalled / 1_000).toBeLessThan(1_000);
    if (process.env['SHOW'] !== undefined) console.log(recorded / 1_000, recalled / 1_000);
  });
});
