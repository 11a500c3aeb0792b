import { describe, expect, it } from '@jest/globals';
import { citationOf } from './citations.js';
import { chatFacts } from './facts.js';

describe('D: an annotation', () => {
  const read = (annotation: object) =>
    citationOf(annotation, 'Mine').map((chunk) =>
      chunk.type === 'citation' ? { ...chunk.citation, vendorData: undefined } : chunk,
    );

  it.each(['quote', 'content', 'snippet'])('has its cited text in %s', (field) => {
    expect(read({ url: 'https://a.b', [field]: 'Snow.' })).toEqual([
      { url: 'https://a.b', citedText: 'Snow.' },
    ]);
  });

  it.each(['title', 'filename', 'name'])('has its title in %s', (field) => {
    expect(read({ [field]: 'T' })).toEqual([{ title: 'T' }]);
  });

  it('has a range that is not reversed', () => {
    expect(read({ url: 'u', start_index: 1, end_index: 1 })).toEqual([
      { url: 'u', start: 1, end: 1 },
    ]);
    expect(read({ url: 'u', start_index: 2, end_index: 1 })).toEqual([{ url: 'u' }]);
  });
});

describe('E: searches', () => {
  it.each([{ num_search_queries: 2 }, { server_tool_use: { web_search_requests: 2 } }])(
    'are counted in %j',
    (usage) => {
      expect(chatFacts({}, {}, usage, 'Mine')).toEqual([
        { type: 'facts', facts: { name: 'Mine', toolUses: { web_search: 2 } } },
      ]);
    },
  );
});
