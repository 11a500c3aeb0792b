import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { MillraceError } from 'millrace';
import type { RetrievedPassage } from 'millrace/retrieval';
import fc from 'fast-check';
import { defer, EMPTY, finalize, NEVER, of, take, throwError, type Observable } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { openFiles } from '../files/open-files.js';
import { openSqlite } from '../sqlite/open-sqlite.js';
import type { DatabaseStore } from '../store.js';
import { documentIndex, type DocumentIndexOptions } from './document-index.js';
import type { IndexDocument } from './document-rows.js';
import { all, documentOf, last, letterVector, notingEmbedder } from './documents.test-support.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let directory: string;
let store: DatabaseStore;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'documents-'));
  store = openSqlite(join(directory, 'millrace.db'));
});
afterAll(async () => {
  await closeStore(store);
  await rm(directory, { recursive: true });
});

let names = 0;
const nextName = (): string => `index ${(names += 1)}`;
const open = (options: DocumentIndexOptions = {}) =>
  documentIndex(store, { name: nextName(), ...options });

const texts = (passages: readonly RetrievedPassage[]): readonly string[] =>
  passages.map(({ text }) => text);

const mill = documentOf('mill.md', 'The mill race drives a wheel.\n\nA gate closes the race.');
const bread = documentOf('food/bread.md', 'Bake bread in an oven.\nFlour comes from a mill.');

describe('documentIndex', () => {
  it('finds passages by word, with their exact text, span and source', async () => {
    const index = open();
    await all(index.add$([mill, bread]));
    const [first, ...rest] = await last(index.retrieve$({ text: 'Which gates close?' }));
    expect(first).toEqual({
      source: 'mill.md',
      text: mill.text.slice(31, 54),
      span: { from: 31, to: 54, line: 3 },
      score: 1 / 61,
    });
    expect(rest).toEqual([]);
    expect(await last(index.retrieve$({ text: 'nothing like it' }))).toEqual([]);
    expect(await last(index.retrieve$({ text: ' ' }))).toEqual([]);
  });

  it('ranks rare words above common ones, and titles above text', async () => {
    const index = open();
    const common = Array.from({ length: 30 }, (_, at) =>
      documentOf(`${at}.md`, 'A mill and a mill, mill.'),
    );
    const rare = documentOf(
      'rare.md',
      'A mill with a flume and much more text about other things.',
    );
    const text = 'Nothing here.';
    const titled = { source: 't.md', text, chunks: [{ from: 0, to: text.length, title: 'Flume' }] };
    await all(index.add$([...common, rare, titled]));
    const found = await last(index.retrieve$({ text: 'mill flume', limit: 2 }));
    expect(found.map(({ source }) => source).sort()).toEqual(['rare.md', 't.md']);
    const [top] = await last(index.retrieve$({ text: 'flume', limit: 1 }));
    expect(top).toMatchObject({ source: 't.md', title: 'Flume' });
  });

  it('finds parts of names, and words in scripts without spaces', async () => {
    const index = open();
    await all(
      index.add$([documentOf('a', 'Call createAgent first.'), documentOf('b', '東京の水車')]),
    );
    expect(texts(await last(index.retrieve$({ text: 'agents' })))).toEqual([
      'Call createAgent first.',
    ]);
    expect(texts(await last(index.retrieve$({ text: '水車' })))).toEqual(['東京の水車']);
  });

  it('neither embeds nor writes what is unchanged, and replaces the chunks of what is not', async () => {
    const embedder = notingEmbedder();
    const name = nextName();
    const add = (...documents: readonly IndexDocument[]) =>
      all(documentIndex(store, { name, embedder }).add$(documents));
    expect(await add(mill, bread)).toMatchObject([
      { source: 'mill.md', status: 'indexed', indexed: 1, unchanged: 0, chunks: 2 },
      { source: 'food/bread.md', status: 'indexed', indexed: 2, unchanged: 0, chunks: 4 },
    ]);
    expect(embedder.asked).toHaveLength(1);
    const changed = documentOf('food/bread.md', 'Only a sluice.');
    expect(await add(mill, changed)).toMatchObject([
      { source: 'mill.md', status: 'unchanged', indexed: 0, unchanged: 1, chunks: 0 },
      { source: 'food/bread.md', status: 'indexed', indexed: 1, unchanged: 1, chunks: 1 },
    ]);
    expect(embedder.asked.slice(1)).toEqual([['Only a sluice.']]);
    const index = documentIndex(store, { name });
    expect(texts(await last(index.retrieve$({ text: 'oven bread flour' })))).toEqual([]);
    expect(texts(await last(index.retrieve$({ text: 'sluice' })))).toEqual(['Only a sluice.']);
    // Other spans of the same text are another content.
    expect(await add({ ...changed, chunks: [{ from: 0, to: 4 }] })).toMatchObject([
      { status: 'indexed' },
    ]);
  });

  it('searches by meaning like a comparison with every vector, within the threshold', async () => {
    const embedder = notingEmbedder();
    const index = open({ embedder, threshold: 0.45 });
    const words = ['abba', 'cab', 'feed', 'hedge', 'jig', 'cage', 'bead', 'zzz', 'fig', 'high'];
    await all(index.add$(words.map((word) => documentOf(word, word))));
    const cosine = (a: readonly number[], b: readonly number[]): number => {
      const dot = a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
      const lengths = Math.hypot(...a) * Math.hypot(...b);
      return lengths === 0 ? 0 : dot / lengths;
    };
    for (const query of ['badge', 'ff gg', 'cacao']) {
      const similar = words
        .map((word) => ({ word, score: cosine(letterVector(query), letterVector(word)) }))
        .filter(({ score }) => score >= 0.45)
        .sort((a, b) => b.score - a.score);
      const found = await last(index.retrieve$({ text: query, limit: 10 }));
      expect(texts(found)).toEqual(similar.map(({ word }) => word));
    }
  });

  it('merges both rankings: a chunk that both find is first', async () => {
    const index = open({ embedder: notingEmbedder() });
    await all(
      index.add$([
        documentOf('1', 'fade'),
        documentOf('2', 'gate'),
        documentOf('3', 'gate zzz jij'),
      ]),
    );
    const [first] = await last(index.retrieve$({ text: 'gate' }));
    expect(first).toMatchObject({ text: 'gate', score: 1 / 61 + 1 / 61 });
  });

  it('removes documents by source, by prefix, or all with the embedder', async () => {
    const name = nextName();
    const index = documentIndex(store, { name, embedder: notingEmbedder() });
    const odd = documentOf('100%_\u0000\ud800', 'odd');
    await all(index.add$([mill, bread, odd, documentOf('food/rye.md', 'rye')]));
    expect(await last(index.sources$())).toEqual([
      '100%_\u0000\ud800',
      'food/bread.md',
      'food/rye.md',
      'mill.md',
    ]);
    expect(await last(index.sources$('food/'))).toEqual(['food/bread.md', 'food/rye.md']);
    expect(await last(index.remove$(['mill.md', 'unknown']))).toBe(1);
    expect(await last(index.remove$({ prefix: 'food_' }))).toBe(0);
    expect(await last(index.remove$({ prefix: '100%_\u0000' }))).toBe(1);
    expect(await last(index.remove$({ prefix: 'food/' }))).toBe(2);
    expect(await last(index.retrieve$({ text: 'bread' }))).toEqual([]);
    await expect(last(index.remove$({ prefix: '' }))).rejects.toMatchObject({ code: 'config' });
    expect(await last(index.remove$('all'))).toBe(0);
    const other = documentIndex(store, { name, embedder: notingEmbedder(() => [1], 'other') });
    expect(await all(other.add$([mill]))).toMatchObject([{ status: 'indexed' }]);
  });

  it('keeps indexes apart, also with vectors of different lengths', async () => {
    const one = open({ embedder: notingEmbedder() });
    const other = open({ embedder: notingEmbedder(() => [1, 0, 0], 'flat') });
    const plain = open();
    await all(one.add$([mill]));
    await all(other.add$([documentOf('mill.md', 'Another mill.')]));
    await all(plain.add$([bread]));
    expect(texts(await last(other.retrieve$({ text: 'mill wheel' })))).toEqual(['Another mill.']);
    expect(await last(one.remove$({ prefix: 'mill' }))).toBe(1);
    expect(await last(other.sources$())).toEqual(['mill.md']);
    expect(texts(await last(plain.retrieve$({ text: 'wheel flour' })))).toEqual([
      'Flour comes from a mill.',
    ]);
  });

  it('refuses another embedder, its absence and other dimensions', async () => {
    const name = nextName();
    await all(documentIndex(store, { name, embedder: notingEmbedder() }).add$([mill]));
    const refusal = { code: 'config', message: expect.stringContaining(name) };
    const other = documentIndex(store, { name, embedder: notingEmbedder(letterVector, 'other') });
    await expect(all(other.add$([mill]))).rejects.toMatchObject(refusal);
    await expect(last(other.retrieve$({ text: 'mill' }))).rejects.toMatchObject(refusal);
    const without = documentIndex(store, { name });
    await expect(all(without.add$([bread]))).rejects.toMatchObject(refusal);
    expect(await last(without.retrieve$({ text: 'gate' }))).toHaveLength(1);
    const longer = documentIndex(store, { name, embedder: notingEmbedder(() => [1, 2]) });
    await expect(all(longer.add$([bread]))).rejects.toThrow('10 dimensions, not of 2');
    expect(await last(without.sources$())).toEqual(['mill.md']);
  });

  it('embeds what was indexed without an embedder when it is added with one', async () => {
    const name = nextName();
    await all(documentIndex(store, { name }).add$([mill]));
    const embedder = notingEmbedder();
    const index = documentIndex(store, { name, embedder });
    expect(texts(await last(index.retrieve$({ text: 'gate' })))).toHaveLength(1);
    expect(embedder.asked).toEqual([]);
    expect(await all(index.add$([mill]))).toMatchObject([{ status: 'indexed' }]);
    expect(await last(index.retrieve$({ text: 'dgae' }))).not.toEqual([]);
  });

  it.each<[string, () => Observable<unknown>, object]>([
    [
      'throws',
      () => throwError(() => new Error('no model')),
      { code: 'unknown', message: expect.stringContaining('no model') },
    ],
    [
      'throws a typed error',
      () => throwError(() => new MillraceError('rateLimited', 'slow')),
      { code: 'rateLimited' },
    ],
    ['never answers', () => NEVER, { code: 'timeout' }],
    ['emits nothing', () => EMPTY, { code: 'invalidResponse' }],
    ['returns NaN', () => of([[NaN], [1]]), { code: 'invalidResponse' }],
    ['returns Infinity', () => of([[Infinity], [1]]), { code: 'invalidResponse' }],
    [
      'returns numbers whose length overflows',
      () =>
        of(
          [
            [1e200, 1e200],
            [1, 1],
          ].map((it) => it.map((n) => n * 1e150)),
        ),
      { code: 'invalidResponse' },
    ],
    ['returns strings', () => of([['1'], ['1']]), { code: 'invalidResponse' }],
    ['returns too few', () => of([[1]]), { code: 'invalidResponse' }],
    ['returns different lengths', () => of([[1], [1, 2]]), { code: 'invalidResponse' }],
    ['returns empty vectors', () => of([[], []]), { code: 'invalidResponse' }],
    ['returns no list', () => of('x'), { code: 'invalidResponse' }],
  ])('reports an embedder that %s, and leaves what was stored', async (_, embed$, error) => {
    const name = nextName();
    const good = documentIndex(store, { name, embedder: notingEmbedder() });
    await all(good.add$([mill]));
    const embedder = { id: 'letters', embed$: embed$ as () => Observable<readonly number[][]> };
    const bad = documentIndex(store, { name, embedder, embedderMs: 20 });
    const changed = documentOf('mill.md', 'Changed.\nTwice.');
    await expect(all(bad.add$([changed]))).rejects.toMatchObject(error);
    const reports: string[] = [];
    const query = { text: 'gate', report: (warning: string) => reports.push(warning) };
    expect(texts(await last(bad.retrieve$(query)))).toEqual(['A gate closes the race.']);
    expect(reports).toEqual([expect.stringContaining('Only words were searched')]);
    expect(await all(good.add$([mill]))).toMatchObject([{ status: 'unchanged' }]);
  });

  it('takes documents only when it needs them, embeds in batches, and stops when it is left', async () => {
    const embedder = notingEmbedder();
    const index = open({ embedder, batchSize: 4 });
    const taken = { count: 0, isClosed: false };
    async function* endless() {
      try {
        for (;;) {
          taken.count += 1;
          yield await Promise.resolve(documentOf(`${taken.count}.md`, 'one\ntwo\nthree'));
        }
      } finally {
        taken.isClosed = true;
      }
    }
    const ahead: number[] = [];
    await new Promise<void>((resolve, reject) => {
      index
        .add$(endless())
        .pipe(take(9), finalize(resolve))
        .subscribe({ next: ({ indexed }) => ahead.push(taken.count - indexed), error: reject });
    });
    expect(ahead).toHaveLength(9);
    expect(Math.max(...ahead)).toBeLessThanOrEqual(2);
    expect(Math.max(...embedder.asked.map((batch) => batch.length))).toBe(4);
    await Promise.resolve().then(() => undefined);
    expect(taken.isClosed).toBe(true);
  });

  it('cancels the request to the embedder when it is left', async () => {
    const cancelled = await new Promise<string>((resolve) => {
      const embed$ = () =>
        defer(() => {
          queueMicrotask(() => subscription.unsubscribe());
          return NEVER.pipe(finalize(() => resolve('cancelled')));
        });
      const index = open({ embedder: { id: 'slow', embed$ } });
      const subscription = index.add$(of(mill)).subscribe();
    });
    expect(cancelled).toBe('cancelled');
  });

  it('keeps any text, in thousands of chunks and huge lines', async () => {
    const index = open({ embedder: notingEmbedder() });
    const lines = Array.from(
      { length: 1_200 },
      (_, at) => `line${at} \u0000 \ud800 🍵 'x' \\ \ufdd0`,
    );
    const many = documentOf('many', lines.join('\n'));
    const huge = documentOf('huge', `${'x'.repeat(99_990)} needle`.slice(-100_000));
    await all(index.add$([many, huge, { source: 'empty', text: '', chunks: [] }]));
    expect(texts(await last(index.retrieve$({ text: 'line1077', limit: 1 })))).toEqual([
      lines[1_077],
    ]);
    expect(texts(await last(index.retrieve$({ text: 'needle', limit: 1 })))).toEqual([huge.text]);
    expect(await last(index.sources$())).toEqual(['empty', 'huge', 'many']);
  });

  it.each<[string, unknown]>([
    ['null', null],
    ['no chunks', { source: 'a', text: 'b' }],
    ['an empty source', { source: '', text: 'b', chunks: [] }],
    ['a span out of the text', { source: 'a', text: 'b', chunks: [{ from: 0, to: 2 }] }],
    ['an empty span', { source: 'a', text: 'b', chunks: [{ from: 1, to: 1 }] }],
    ['a span of fractions', { source: 'a', text: 'bcd', chunks: [{ from: 0.5, to: 2 }] }],
    [
      'a chunk that is too long',
      { source: 'a', text: 'b'.repeat(100_001), chunks: [{ from: 0, to: 100_001 }] },
    ],
  ])('refuses a document with %s', async (_, document) => {
    const given = [document] as readonly IndexDocument[];
    await expect(all(open().add$(given))).rejects.toMatchObject({ code: 'invalidRequest' });
  });

  it('has the documents that were added last, after any additions and removals', async () => {
    const source = fc.constantFrom('a', 'a/b', 'a/c', 'd');
    const line = fc.constantFrom('gate', 'mill', 'race wheel', 'mill gate', '');
    const text = fc.array(line, { maxLength: 4 }).map((lines) => lines.join('\n'));
    const add = fc.record({ source, text });
    const remove = fc.record({ prefix: fc.constantFrom('a', 'a/', 'd', 'e') });
    const name = nextName();
    const index = documentIndex(store, { name, embedder: notingEmbedder() });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof({ weight: 3, arbitrary: add }, remove), { maxLength: 8 }),
        async (steps) => {
          await last(index.remove$('all'));
          const model = new Map<string, string>();
          for (const step of steps) {
            if ('prefix' in step) {
              await last(index.remove$(step));
              for (const key of model.keys()) if (key.startsWith(step.prefix)) model.delete(key);
            } else {
              const added = documentOf(step.source, step.text);
              const [progress] = await all(index.add$([added]));
              const before = documentOf(step.source, model.get(step.source) ?? '');
              const isSame =
                model.has(step.source) &&
                JSON.stringify(before.chunks) === JSON.stringify(added.chunks) &&
                before.text.trimEnd() === added.text.trimEnd();
              expect(progress?.status).toBe(isSame ? 'unchanged' : 'indexed');
              model.set(step.source, step.text);
            }
          }
          expect(await last(index.sources$())).toEqual([...model.keys()].sort());
          const found = await last(index.retrieve$({ text: 'gate mill race wheel', limit: 50 }));
          const lines = [...model].flatMap(([key, it]) =>
            it
              .split('\n')
              .filter(Boolean)
              .map((part) => `${key}: ${part}`),
          );
          expect(found.map((it) => `${it.source}: ${it.text}`).sort()).toEqual(lines.sort());
          for (const { source: key, text: passage, span } of found) {
            expect(model.get(key)?.slice(span?.from, span?.to)).toBe(passage);
          }
        },
      ),
      { numRuns: 20 },
    );
  });

  it('refuses stores without a database, options that cannot be, and a closed store', async () => {
    const files = openFiles(join(directory, 'files'));
    expect(() => documentIndex(files as DatabaseStore)).toThrow('openSqlite() or openPostgres()');
    const unnamed: object = { embedder: { embed$: () => EMPTY } };
    expect(() => documentIndex(store, unnamed)).toThrow('an id that names its model');
    expect(() => documentIndex(store, { name: '' })).toThrow('needs a name');
    expect(() => documentIndex(store, { language: "x'" })).toThrow('text search configuration');
    expect(() => documentIndex(store, { language: 'german' })).toThrow('only Postgres stems');
    const other = openSqlite(join(directory, 'other.db'));
    const index = documentIndex(other);
    await closeStore(other);
    await expect(last(index.retrieve$({ text: 'mill' }))).rejects.toMatchObject({ code: 'store' });
  });
});
