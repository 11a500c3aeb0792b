import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import type { Embedder } from 'millrace';
import {
  citationsIn,
  numbered,
  type RetrievalQuery,
  type RetrievedPassage,
} from 'millrace/retrieval';
import { marbles } from 'millrace/testing';
import fc from 'fast-check';
import { defer, EMPTY, lastValueFrom, map, type Observable, of, Subject, throwError } from 'rxjs';
import { isQuick } from '../is-quick.test-support.js';
import type { SearchDocument } from '../search/document.js';
import { documentRetriever, type DocumentRetrieverOptions } from './document-retriever.js';
import { letterVector, meaningVector, notingEmbedder } from './embedders.test-support.js';

const guide: SearchDocument = {
  path: 'docs/guide.md',
  text: [
    '# Guide',
    'Welcome to the mill.',
    '## Backpressure',
    'A reader that is slow closes the gate, and the wheel stands still.',
    '## Stopping',
    'Unsubscribe, or emit on `interruptOn`:',
    'the partial answer is kept.',
    '## Testing your agent',
    'Give it a scripted model: it fails at any request that you did not expect.',
    '## Budgets',
    'A call ends where its budget is spent.',
  ].join('\r\n'),
};
const kitchen: SearchDocument = {
  path: 'kitchen.md',
  text: 'Bread is baked from flour, water and salt. The oven is hot.',
};
const documents = [guide, kitchen];
const textOfPath = new Map(documents.map(({ path, text }) => [path, text]));

type Options = Partial<DocumentRetrieverOptions>;

const retrieve = (
  query: string | RetrievalQuery,
  options: Options = {},
): Promise<readonly RetrievedPassage[]> =>
  lastValueFrom(
    documentRetriever({ load: () => documents, ...options }).retrieve$(
      typeof query === 'string' ? { text: query } : query,
    ),
  );

const title = ({ title: it, source }: RetrievedPassage): string => it ?? source;

describe('documentRetriever', () => {
  it('I21: embeds the query of each user in their own async context, also if another one has begun the index', () => {
    const user = new AsyncLocalStorage<string>();
    const loaded = new Subject<readonly SearchDocument[]>();
    const seen: unknown[] = [];
    const embedder: Embedder = {
      embed$: (texts) =>
        defer(() => {
          if (texts.length === 1) seen.push([texts[0], user.getStore()]);
          return of(texts.map(meaningVector));
        }),
    };
    const { retrieve$ } = documentRetriever({ load: () => loaded, embedder });
    for (const who of ['ann', 'ben']) {
      user.run(who, () => retrieve$({ text: `the mill of ${who}` }).subscribe());
    }
    user.run('cyd', () => {
      loaded.next(documents);
      loaded.complete();
    });
    expect(seen).toEqual([
      ['the mill of ann', 'ann'],
      ['the mill of ben', 'ben'],
    ]);
  });

  it('R7: gives passages with their source, headings, span and line', async () => {
    const [first, ...others] = await retrieve('How do I unsubscribe?');
    const text = 'Unsubscribe, or emit on `interruptOn`:\r\nthe partial answer is kept.';
    const from = guide.text.indexOf(text);
    expect(others).toEqual([]);
    expect(first).toEqual({
      source: 'docs/guide.md',
      title: 'Guide › Stopping',
      text,
      span: { from, to: from + text.length, line: 6 },
      score: 1 / 61,
    });
  });

  it('R7: a document without headings has no title', async () => {
    expect((await retrieve('oven')).map(Object.keys)).toEqual([
      ['source', 'text', 'span', 'score'],
    ]);
  });

  it.each([
    ['how do i stop an agent', 'Guide › Stopping'],
    ['my reader is slow', 'Guide › Backpressure'],
    ['how can i test without a real model', 'Guide › Testing your agent'],
    ['what happens when the budget is spent', 'Guide › Budgets'],
    ['what is bread made of', 'kitchen.md'],
  ])('R7: finds for %s by words: %s', async (query, place) => {
    expect((await retrieve(query)).map(title)[0]).toBe(place);
  });

  it.each([
    ['cancel it', 'Guide › Stopping'],
    ['it is sluggish', 'Guide › Backpressure'],
    ['is there a mock', 'Guide › Testing your agent'],
    ['too expensive', 'Guide › Budgets'],
    ['dough', 'kitchen.md'],
  ])('R7: finds for %s by meaning, and not by words: %s', async (query, place) => {
    expect(await retrieve(query)).toEqual([]);
    const embedder = notingEmbedder(meaningVector);
    expect((await retrieve(query, { embedder })).map(title)[0]).toBe(place);
  });

  it('R7: what both find comes before what one finds', async () => {
    const texts = ['gate gate gate cost', 'gate backpressure', 'overwhelmed'];
    const load = () => texts.map((text, n) => ({ path: `${n}.md`, text }));
    const found = await retrieve('the gate is sluggish', {
      load,
      embedder: notingEmbedder(meaningVector),
    });
    expect(
      found
        .map(({ source }) => source)
        .slice(0, 2)
        .sort(),
    ).toEqual(['0.md', '1.md']);
    expect(found.map(({ source }) => source)[2]).toBe('2.md');
    const scores = found.map(({ score = 0 }) => score);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
  });

  it('R7: looks at more of both than it gives: second in both is better than first in one', async () => {
    const vectors: Readonly<Record<string, readonly number[]>> = {
      gate: [1, 0],
      'gate gate gate gate': [0, 1],
      'the gate of a mill, and its wheel': [1, 0.2],
      oven: [1, 0],
    };
    const texts = Object.keys(vectors).slice(1);
    const load = () => texts.map((text, n) => ({ path: `${n}.md`, text }));
    const embedder = notingEmbedder((text) => vectors[text] ?? []);
    const [first] = await retrieve({ text: 'gate', limit: 1 }, { load, embedder });
    expect(first?.source).toBe('1.md');
    expect((await retrieve('gate', { load }))[0]?.source).toBe('0.md');
  });

  it('R7: leaves out what is less alike than the threshold', async () => {
    const embedder = notingEmbedder(letterVector);
    const sources = async (threshold: number) =>
      (await retrieve('zzz oven', { embedder, threshold })).map(({ source }) => source);
    expect(await sources(0.99)).toEqual(['kitchen.md']);
    expect((await sources(0)).length).toBe(5);
  });

  it('R7: gives as many as are asked for, 5 by default', async () => {
    const load = () => Array.from({ length: 80 }, (_, n) => ({ path: `${n}.md`, text: 'wheel' }));
    expect(await retrieve('wheel', { load })).toHaveLength(5);
    expect(await retrieve({ text: 'wheel', limit: 1 }, { load })).toHaveLength(1);
    expect(await retrieve({ text: 'wheel', limit: 70 }, { load })).toHaveLength(70);
  });

  it.each(['', '  ', '?!', 'what is it about?', 'kubernetes'])(
    'R7: finds nothing for %j',
    async (query) => {
      expect(await retrieve(query)).toEqual([]);
    },
  );

  it('R7: makes no request for a query without words', async () => {
    const embedder = notingEmbedder(letterVector);
    const load = () => throwError(() => new Error('It was loaded.'));
    expect(await retrieve('what is it?', { embedder, load })).toEqual([]);
    expect(embedder.asked).toEqual([]);
  });

  it('R7: finds nothing if there is nothing', async () => {
    const embedder = notingEmbedder(letterVector);
    expect(await retrieve('wheel', { load: () => EMPTY, embedder })).toEqual([]);
  });

  it('R7: cuts a section that is longer than a passage around what was looked for', async () => {
    const filler = 'lorem ipsum dolor.\r\n'.repeat(60);
    const text = `# Long\r\n${filler}The gate is here.\r\n${filler}`;
    const load = () => [{ path: 'long.md', text }];
    const [found] = await retrieve('gate', { load, passageLength: 200 });
    expect(found?.text.length).toBeLessThanOrEqual(200);
    expect(found?.text).toContain('The gate is here.');
    expect(text.slice(found?.span?.from, found?.span?.to)).toBe(found?.text);
    expect(found?.span?.line).toBe(text.slice(0, found?.span?.from).split('\n').length);
    expect((await retrieve('gate', { load, passageLength: 5_000 }))[0]?.text).toBe(
      text.slice(8).trim(),
    );
  });

  it('R7: the text of a passage is what the document has at its span', async () => {
    const word = fc.constantFrom(
      'gate',
      'wheel',
      'turns',
      '# A',
      '## B',
      '\n',
      '\r\n',
      '😀',
      '```',
    );
    const texts = fc.array(fc.array(word, { maxLength: 200 }), { maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(texts, fc.boolean(), async (parts, isMeant) => {
        const load = () => parts.map((it, n) => ({ path: `${n}`, text: it.join(' ') }));
        const embedder = isMeant ? { embedder: notingEmbedder(letterVector) } : {};
        const found = await retrieve('gate wheel', { load, passageLength: 100, ...embedder });
        for (const { source, text, span } of found) {
          const document = parts[Number(source)]?.join(' ') ?? '';
          expect(document.slice(span?.from, span?.to)).toBe(text);
          expect(span?.line).toBe(document.slice(0, span?.from).split('\n').length);
          expect(text.length).toBeGreaterThan(0);
          expect(text.length).toBeLessThanOrEqual(100);
        }
      }),
    );
  });

  it('R7: an answer can be checked against what it cites', async () => {
    const found = await retrieve('Does the wheel stand still where a reader is slow?');
    expect(numbered(found)).toContain(
      '[1] docs/guide.md, Guide › Backpressure, line 4\n> A reader',
    );
    const { cited } = citationsIn('It stands still [1].', found);
    const [{ passage } = { passage: undefined }] = cited;
    const { source = '', span } = passage ?? {};
    expect(textOfPath.get(source)?.slice(span?.from, span?.to)).toContain('stands still');
  });

  it.each(['constructor', '__proto__', 'toString hasOwnProperty', 'prototype'])(
    'X15: finds nothing for %s if no text has it',
    async (query) => {
      expect(await retrieve(query)).toEqual([]);
      const load = () => [{ path: '__proto__', text: '# __proto__\nwheel' }];
      expect((await retrieve('wheel', { load }))[0]?.source).toBe('__proto__');
      expect(Reflect.get({}, 'polluted')).toBeUndefined();
    },
  );

  it('R7: is quick with 10 MB, if both ends count', async () => {
    const filler = 'x1 y2 '.repeat(1_700_000);
    const retriever = documentRetriever({ load: () => documents });
    for (const text of [`${filler} oven`, `oven ${filler}`]) {
      expect(isQuick(500, () => retriever.retrieve$({ text }).subscribe())).toBe(true);
      const [found] = await lastValueFrom(retriever.retrieve$({ text }));
      expect(found?.source).toBe('kitchen.md');
    }
  });

  it.each([
    [{}, /needs 'load': a function that returns the documents/],
    [{ load: documents }, /'load' must be a function/],
    [{ load: () => documents, embedder: () => [] }, /'embedder' must be .*embed\$/],
    [{ load: () => documents, threshold: '1' }, /'threshold' must be/],
    [{ load: () => documents, passageLength: 10 }, /'passageLength' must be .* at least 100/],
    [{ load: () => documents, top: 3 }, /has no option 'top'/],
  ])('R7: refuses the options %j', (options, message) => {
    expect(() => documentRetriever(options as never)).toThrow(message);
  });

  it.each([
    [{}, /needs 'text'/],
    [{ text: 'wheel', limit: 0 }, /'limit' must be/],
    [{ text: 'wheel', report: 'me' }, /'report' must be a function/],
  ])('R7: refuses the query %j', async (query, message) => {
    await expect(retrieve(query as never)).rejects.toThrow(message);
  });
});

const many = Array.from({ length: 150 }, (_, n) => ({ path: `${n}.md`, text: `wheel ${n}` }));

describe('documentRetriever, of its vectors', () => {
  it('R7: has them made once, in batches, with the headings', async () => {
    const embedder = notingEmbedder(letterVector);
    const retriever = documentRetriever({ load: () => [...many, guide], embedder });
    await lastValueFrom(retriever.retrieve$({ text: 'wheel' }));
    expect(embedder.asked.map((texts) => texts.length)).toEqual([1, 64, 64, 27]);
    expect(embedder.asked[3]?.[24]).toMatch(/^Guide\nStopping\nUnsubscribe.*:\nthe/u);
    await lastValueFrom(retriever.retrieve$({ text: 'gate' }));
    expect(embedder.asked.slice(4)).toEqual([['gate']]);
  });

  it('R7: embeds no more text than an embedder takes', async () => {
    const embedder = notingEmbedder(letterVector);
    const load = () => [{ path: 'a.md', text: 'wheel '.repeat(10_000) }];
    await retrieve(`${'gate '.repeat(10_000)} wheel`, { load, embedder });
    for (const [text = ''] of embedder.asked) expect(text.length).toBeLessThanOrEqual(8_000);
  });

  it('G3: gives what the words find if the embedder fails, and reports it', async () => {
    const warnings: string[] = [];
    const report = (warning: string) => warnings.push(warning);
    const embedder = notingEmbedder(letterVector, () => true);
    const query = { text: 'oven', report };
    expect(await retrieve(query, { embedder })).toEqual(await retrieve('oven'));
    expect(warnings).toEqual([
      'Only words were searched, because the search by meaning failed. The embedder is away.',
    ]);
    expect(await retrieve('oven', { embedder })).toHaveLength(1);
  });

  it('G3: asks an embedder that is down for the query alone', async () => {
    const embedder = notingEmbedder(letterVector, () => true);
    await retrieve('wheel', { load: () => many, embedder });
    expect(embedder.asked).toEqual([['wheel']]);
  });

  it('G3: keeps the vectors that were made before a failure, and has the rest made', async () => {
    let isDown = true;
    const embedder = notingEmbedder(letterVector, (texts) => isDown && texts.length === 22);
    const retriever = documentRetriever({ load: () => many, embedder });
    const warnings: string[] = [];
    const ask = () =>
      lastValueFrom(
        retriever.retrieve$({ text: 'wheel', report: (warning) => warnings.push(warning) }),
      );
    expect(await ask()).toHaveLength(5);
    expect(warnings).toHaveLength(1);
    isDown = false;
    await ask();
    expect(warnings).toHaveLength(1);
    expect(embedder.asked.map((texts) => texts.length)).toEqual([1, 64, 64, 22, 1, 22]);
  });

  it.each([
    ['nothing', () => EMPTY, 'no vectors'],
    ['too few', () => of([]), 'number of vectors differs'],
    ['no numbers', (texts) => of(texts.map(() => ['a'] as never)), 'no numbers'],
    ['NaN', (texts) => of(texts.map(() => [Number.NaN])), 'no numbers'],
    ['no vectors', (texts) => of(texts.map(() => null as never)), ''],
    ['different lengths', (texts) => of(texts.map((it) => it.split('').map(() => 1))), 'lengths'],
    [
      'an error that is none',
      () =>
        defer(() => {
          throw 'down';
        }),
      'failed.',
    ],
    [
      'a throw',
      () => {
        throw new Error('at once');
      },
      'at once',
    ],
  ] as readonly [string, Embedder['embed$'], string][])(
    'G3: reports an embedder that gives %s',
    async (_, embed$, why) => {
      const warnings: string[] = [];
      const found = await retrieve(
        { text: 'oven', report: (warning) => warnings.push(warning) },
        { embedder: { embed$ } },
      );
      expect(found.map(({ source }) => source)).toEqual(['kitchen.md']);
      expect(warnings).toEqual([expect.stringContaining(why)]);
    },
  );

  it('R7: finds by words where all vectors are nought', async () => {
    const embedder = notingEmbedder(() => [0, 0]);
    expect(await retrieve('oven', { embedder })).toHaveLength(1);
  });

  it('R7: are shared by queries that come while they are made, and there for later ones', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const load$ = cold('--(a|)', { a: kitchen });
      const asked$ = cold('-(v|)', { v: [[1]] });
      const made$ = cold('-----(v|)', { v: [[1]] });
      const embedder: Embedder = { embed$: ([text]) => (text === 'oven' ? asked$ : made$) };
      const sources$ = sourcesOf({ load: () => load$, embedder });
      expectObservable(sources$, '^').toBe('--------(f|)', found);
      expectObservable(sources$, '-^').toBe('--------(f|)', found);
      expectObservable(sources$, '----------^').toBe('-----------(f|)', found);
      expectSubscriptions(load$.subscriptions).toBe('^-!');
      expectSubscriptions(asked$.subscriptions).toBe(['--^!', '--^!', '----------^!']);
      expectSubscriptions(made$.subscriptions).toBe('---^----!');
    });
  });

  it('R7: are there for all who ask at the same time, also while documents are read', async () => {
    const load = async function* () {
      await Promise.resolve();
      yield* documents;
    };
    const retriever = documentRetriever({ load, embedder: notingEmbedder(meaningVector) });
    const ask = () => lastValueFrom(retriever.retrieve$({ text: 'stop' }));
    const all = await Promise.all([ask(), ask(), ask()]);
    expect(all.map((found) => found.length)).toEqual([1, 1, 1]);
  });

  it('R7: are left immediately when the last subscriber leaves, and continued later', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const asked$ = cold('(v|)', { v: [[1]] });
      const made$ = cold('-----(v|)', { v: [[1]] });
      const embedder: Embedder = { embed$: ([text]) => (text === 'oven' ? asked$ : made$) };
      const sources$ = sourcesOf({ load: () => [kitchen], embedder });
      expectObservable(sources$, '^-!').toBe('---');
      expectObservable(sources$, '-^--!').toBe('-----');
      expectObservable(sources$, '------^').toBe('-----------(f|)', found);
      expectSubscriptions(made$.subscriptions).toBe(['^---!', '------^----!']);
    });
  });
});

const found = { f: ['kitchen.md'] };

const sourcesOf = (options: DocumentRetrieverOptions): Observable<readonly string[]> =>
  documentRetriever(options)
    .retrieve$({ text: 'oven' })
    .pipe(map((passages) => passages.map(({ source }) => source)));

describe('documentRetriever, building its index', () => {
  it('R7: is cold, and loads when it is first asked', () => {
    let loads = 0;
    const retriever = documentRetriever({
      load: () => {
        loads += 1;
        return documents;
      },
    });
    const found$ = retriever.retrieve$({ text: 'oven' });
    expect(loads).toBe(0);
    found$.subscribe();
    found$.subscribe();
    retriever.retrieve$({ text: 'gate' }).subscribe();
    expect(loads).toBe(1);
  });

  it('R7: is left immediately when the last query that waits for it is cut, and built again', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const load$ = cold('-a--(b|)', { a: guide, b: kitchen });
      const sources$ = sourcesOf({ load: () => load$ });
      expectObservable(sources$, '^-!').toBe('---');
      expectObservable(sources$, '-^-!').toBe('----');
      expectObservable(sources$, '-----^').toBe('---------(f|)', found);
      expectSubscriptions(load$.subscriptions).toBe(['^--!', '-----^---!']);
    });
  });

  it('R7: a query may be cut, and another asked, from within a notification', () => {
    const documents$ = new Subject<SearchDocument>();
    const retriever = documentRetriever({ load: () => documents$ });
    const seen: string[] = [];
    const ask = (text: string) =>
      retriever.retrieve$({ text }).subscribe(() => {
        seen.push(text);
        if (text !== 'oven') return;
        cut.unsubscribe();
        ask('salt');
      });
    ask('oven');
    const cut = ask('flour');
    documents$.next(kitchen);
    documents$.complete();
    expect(seen).toEqual(['oven', 'salt']);
  });

  it('G3: errors as loading does, and loads again', async () => {
    let loads = 0;
    const retriever = documentRetriever({
      load: () => {
        loads += 1;
        return loads === 1 ? throwError(() => new Error('The disk is away.')) : documents;
      },
    });
    const found$ = retriever.retrieve$({ text: 'oven' });
    await expect(lastValueFrom(found$)).rejects.toThrow('The disk is away.');
    expect(await lastValueFrom(found$)).toHaveLength(1);
  });
});
