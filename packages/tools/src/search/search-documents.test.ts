import { describe, expect, it } from '@jest/globals';
import { defer, EMPTY, firstValueFrom, NEVER, of, Subject, throwError } from 'rxjs';
import { lentToolContext } from 'millrace/testing';
import { runTool } from '../run-tool.test-support.js';
import type { SearchDocument } from './document.js';
import { searchDocuments } from './search-documents.js';

const manual: SearchDocument = {
  path: 'docs/manual.md',
  text: [
    '# Manual',
    'Welcome to the manual of the mill.',
    '## Backpressure',
    'A slow consumer closes the gate, and the wheel stands still until it opens again.',
    '## Tools',
    'A tool is made with createTool. It may emit progress.',
    '### Errors of tools',
    'An error becomes an observation.',
  ].join('\n'),
};
const kitchen: SearchDocument = {
  path: 'kitchen.md',
  text: '# Kitchen\nBread is baked from flour, water and salt. The oven is hot.',
};
const documents = [manual, kitchen];

const search = async (query: string, limit?: number): Promise<string> => {
  const tool = searchDocuments({ load: () => documents });
  return (await runTool(tool, { query, ...(limit === undefined ? {} : { limit }) })).text;
};

describe('searchDocuments', () => {
  it('gives the best passage with its file, line, headings and relevance', async () => {
    expect(await search('backpressure', 1)).toBe(
      [
        'Found in the 2 files searched:',
        '1. docs/manual.md:3 › Manual › Backpressure (relevance 100 %)',
        'A slow consumer closes the gate, and the wheel stands still until it opens again.',
      ]
        .join('\n\n')
        .replace('%)\n\n', '%)\n'),
    );
  });

  it.each([
    ['How do errors of tools become observations?', '› Errors of tools'],
    ['What does the documentation say about flour?', 'kitchen.md:1 › Kitchen (relevance 100 %)'],
    ['flour', 'kitchen.md:1 › Kitchen'],
    ['create tool', '› Tools'],
    ['CREATETOOL', '› Tools'],
    ['progres', '› Tools'],
    ['kitchens', 'kitchen.md'],
  ])('finds a passage for %s', async (query, passage) => {
    expect((await search(query)).split('\n\n')[1]).toContain(passage);
  });

  it('reports it if nothing matches', async () => {
    expect(await search('kubernetes')).toBe(
      "Nothing in the 2 files searched matches 'kubernetes'. Try other words.",
    );
  });

  it('reports it if only some of the words match', async () => {
    const text = await search('kubernetes oven autoscaling');
    expect(text).toMatch(/matches 'kubernetes oven autoscaling' well.*may not answer/u);
    expect(text).toContain('(relevance 33 %)');
  });

  it('refuses a query without a significant word', async () => {
    await expect(search('what is it about?')).rejects.toThrow('no words to search for');
    await expect(search('?!')).rejects.toThrow('no words to search for');
    await expect(search('')).rejects.toThrow('query');
  });

  it('gives as many passages as are asked for, 3 by default', async () => {
    const load = (): SearchDocument[] =>
      Array.from({ length: 9 }, (_, index) => ({ path: `${index}.md`, text: `wheel ${index}` }));
    const found = async (limit: object): Promise<number> => {
      const { output } = await runTool(searchDocuments({ load }), { query: 'wheel', ...limit });
      return (output.details as { passages: unknown[] }).passages.length;
    };
    expect(await found({})).toBe(3);
    expect(await found({ limit: 5 })).toBe(5);
    await expect(found({ limit: 11 })).rejects.toThrow('limit');
  });

  it('gives the passages to the user interface', async () => {
    const { output } = await runTool(searchDocuments({ load: () => documents }), { query: 'oven' });
    expect(output.details).toMatchObject({
      query: 'oven',
      passages: [{ path: 'kitchen.md', headings: ['Kitchen'], line: 1, relevance: 1 }],
    });
  });

  it.each(['constructor', '__proto__', 'toString hasOwnProperty', 'prototype'])(
    'X15: finds nothing for %s if no text has it',
    async (query) => {
      expect(await search(query)).toContain('Nothing in the 2 files');
      expect(Reflect.get({}, 'polluted')).toBeUndefined();
    },
  );

  it('says that there is nothing to search', async () => {
    const { text } = await runTool(searchDocuments({ load: () => EMPTY }), { query: 'wheel' });
    expect(text).toBe('There are no documents to search.');
  });

  it('bears the name and the description that it is given', () => {
    const { name, description } = searchDocuments({
      load: () => [],
      name: 'faq',
      description: 'Answers.',
    });
    expect({ name, description }).toEqual({ name: 'faq', description: 'Answers.' });
    expect(searchDocuments({ load: () => [] }).name).toBe('search_docs');
  });

  it('refuses to be made without documents, and says what is missing', () => {
    expect(() => searchDocuments({} as never)).toThrow(/'load'/u);
  });
});

describe('searchDocuments, building its index', () => {
  const count = 60;
  const many = Array.from({ length: count }, (_, index) => ({
    path: `${index}.md`,
    text: 'wheel',
  }));

  it('shows its progress, and loads once', async () => {
    let loads = 0;
    const load = (): SearchDocument[] => {
      loads += 1;
      return many;
    };
    const tool = searchDocuments({ load });
    const { progress, text } = await runTool(tool, { query: 'wheel' });
    expect(progress.filter((it) => typeof it === 'string')).toEqual([
      'Indexed 25 files.\n',
      'Indexed 50 files.\n',
      'Indexed 60 files.\n',
    ]);
    expect(text).toContain('Found in the 60 files searched:');
    const again = await runTool(tool, { query: 'wheel' });
    expect(again.progress.filter((it) => typeof it === 'string')).toEqual([]);
    expect(again.text).toBe(text);
    expect(loads).toBe(1);
  });

  it.each([
    ['an Observable of documents', () => of(manual, kitchen)],
    ['a Promise of a list', () => Promise.resolve(documents)],
    [
      'an AsyncIterable',
      async function* () {
        yield await Promise.resolve(manual);
        yield [kitchen];
      },
    ],
  ])('takes %s', async (_, load) => {
    const { text } = await runTool(searchDocuments({ load }), { query: 'flour' });
    expect(text).toContain('Found in the 2 files searched:');
  });

  it('is shared by searches that come while it is built', () => {
    const documents$ = new Subject<SearchDocument>();
    let loads = 0;
    const tool = searchDocuments({
      load: () =>
        defer(() => {
          loads += 1;
          return documents$;
        }),
    });
    const outputs: string[] = [];
    for (const query of ['wheel', 'flour']) {
      tool.run$({ query }, lentToolContext()).subscribe((it) => {
        if (it.type === 'output') outputs.push(query);
      });
    }
    documents$.next(kitchen);
    expect(outputs).toEqual([]);
    documents$.complete();
    expect(outputs).toEqual(['wheel', 'flour']);
    expect(loads).toBe(1);
  });

  it('stops when the last search that waits for it is cut, and starts again', () => {
    let open = 0;
    const tool = searchDocuments({
      load: () =>
        defer(() => {
          open += 1;
          return NEVER;
        }),
    });
    const run$ = tool.run$({ query: 'wheel' }, lentToolContext());
    const [first, second] = [run$.subscribe(), run$.subscribe()];
    first.unsubscribe();
    second.unsubscribe();
    run$.subscribe().unsubscribe();
    expect(open).toBe(2);
  });

  it('loads again after a failure', async () => {
    let loads = 0;
    const tool = searchDocuments({
      load: () => {
        loads += 1;
        return loads === 1 ? throwError(() => new Error('The disk is away.')) : documents;
      },
    });
    const run$ = tool.run$({ query: 'flour' }, lentToolContext());
    await expect(firstValueFrom(run$)).rejects.toThrow('The disk is away.');
    expect((await runTool(tool, { query: 'flour' })).text).toContain('kitchen.md');
  });
});
