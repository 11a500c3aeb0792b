import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, expect, it } from '@jest/globals';
import type { Tool } from 'millrace';
import { toolContract } from 'millrace/testing';
import { runTool } from '../run-tool.test-support.js';
import { openVendor } from '../services/vendor.test-support.js';
import { githubSearch } from './github-search.js';
import { arxiv, pubmed } from './papers.js';
import { webSearch, type WebSearchOptions } from './web-search.js';
import { wikipedia } from './wikipedia.js';

const apiKey = 'TOP-SECRET';
const vendor = await openVendor();
const run = (tool: Tool, query = 'water mill & more') => runTool(tool, { query });
const errorOf = (tool: Tool): Promise<unknown> => run(tool).catch((thrown: unknown) => thrown);
const search = (provider: WebSearchOptions['provider'], more: Partial<WebSearchOptions> = {}) =>
  webSearch({
    provider,
    baseURL: vendor.url,
    ...(provider !== 'duckduckgo' && provider !== 'searxng' && { apiKey }),
    ...(provider === 'google' && { engineId: 'engine' }),
    ...more,
  });

const vendors = {
  // https://docs.tavily.com/api-reference/endpoint/search, stored copy read on 2026-11-26.
  tavily: {
    path: '/search',
    asked: {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: { query: 'water mill & more', max_results: 2, search_depth: 'basic' },
    },
    answer: {
      query: 'x',
      images: [],
      results: [
        {
          title: 'Water <b>mill</b>',
          url: 'https://mill.test/a',
          content: 'A mill\n turned by water.',
          score: 0.8,
          raw_content: null,
        },
        { title: 'Wheel', url: 'https://mill.test/b', content: 'Turns.', score: 0.5 },
        { title: 'Third', url: 'https://mill.test/c', content: '', score: 0.1 },
      ],
      response_time: '1.67',
    },
    text: '1. Water mill\n   https://mill.test/a\n   A mill turned by water.\n2. Wheel\n   https://mill.test/b\n   Turns.',
  },
  // https://api-dashboard.search.brave.com/api-reference/web/search/get, stored copy read on 2026-11-26.
  brave: {
    path: '/res/v1/web/search',
    asked: {
      method: 'GET',
      headers: { 'x-subscription-token': apiKey },
      query: { q: 'water mill & more', count: '2' },
    },
    answer: {
      type: 'search',
      query: { original: 'x', more_results_available: true },
      web: {
        type: 'search',
        results: [
          {
            title: 'Water mill',
            url: 'https://mill.test/a',
            description: 'A <strong>mill</strong> &amp; its wheel.',
            age: '2 days ago',
            extra_snippets: [],
          },
        ],
      },
    },
    text: '1. Water mill\n   https://mill.test/a\n   2 days ago\n   A mill & its wheel.',
  },
  // https://developers.google.com/custom-search/v1/using_rest, stored copy read on 2026-11-26.
  google: {
    path: '/customsearch/v1',
    asked: {
      method: 'GET',
      query: { key: apiKey, cx: 'engine', q: 'water mill & more', num: '2' },
    },
    answer: {
      kind: 'customsearch#search',
      items: [
        {
          kind: 'customsearch#result',
          title: 'Water mill',
          htmlTitle: '<b>Water</b> mill',
          link: 'https://mill.test/a',
          snippet: 'A mill.',
        },
      ],
    },
    text: '1. Water mill\n   https://mill.test/a\n   A mill.',
  },
  // https://duckduckgo.com/api, stored copy read on 2026-11-26.
  duckduckgo: {
    path: '/',
    asked: {
      method: 'GET',
      query: {
        q: 'water mill & more',
        format: 'json',
        no_html: '1',
        no_redirect: '1',
        skip_disambig: '1',
      },
    },
    answer: {
      Heading: 'Watermill',
      AbstractText: 'A mill that uses hydropower.',
      AbstractSource: 'Wikipedia',
      AbstractURL: 'https://en.wikipedia.org/wiki/Watermill',
      Answer: '',
      Results: [],
      RelatedTopics: [
        {
          Name: 'More',
          Topics: [
            {
              FirstURL: 'https://duckduckgo.com/Gristmill',
              Icon: {},
              Result: '<a>',
              Text: 'Gristmill - Grinds grain.',
            },
          ],
        },
      ],
      Type: 'A',
    },
    text: '1. Watermill\n   https://en.wikipedia.org/wiki/Watermill\n   Wikipedia\n   A mill that uses hydropower.\n2. Gristmill\n   https://duckduckgo.com/Gristmill\n   Gristmill - Grinds grain.',
  },
  // https://ai.baidu.com/ai-doc/AppBuilder/pmaxd1hvy, stored copy read on 2026-11-26; the path web_search by public clients.
  baidu: {
    path: '/v2/ai_search/web_search',
    asked: {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}` },
      body: {
        messages: [{ role: 'user', content: 'water mill & more' }],
        search_source: 'baidu_search_v2',
        resource_type_filter: [{ type: 'web', top_k: 2 }],
      },
    },
    answer: {
      requestId: 'x',
      references: [
        {
          id: 1,
          title: '水车',
          url: 'https://mill.test/a',
          content: '水车是…',
          date: '2026-01-02 00:00:00',
          type: 'web',
          web_anchor: '水车',
        },
      ],
    },
    text: '1. 水车\n   https://mill.test/a\n   2026-01-02 00:00:00\n   水车是…',
  },
  // https://docs.searxng.org/dev/search_api, stored copy read on 2026-11-30; the fields of results by public clients.
  searxng: {
    path: '/search',
    asked: { method: 'GET', query: { q: 'water mill & more', format: 'json' } },
    answer: {
      query: 'x',
      number_of_results: 0,
      results: [
        {
          url: 'https://mill.test/a',
          title: 'Water mill',
          content: 'A mill.',
          publishedDate: '2026-01-02T00:00:00',
          engine: 'mojeek',
          engines: ['mojeek'],
          score: 1,
        },
        { url: 'https://mill.test/b', title: 'Wheel', content: '', publishedDate: null },
        { url: 'https://mill.test/c', title: 'Third', content: 'Over the limit.' },
      ],
      answers: [],
      suggestions: [],
    },
    text: '1. Water mill\n   https://mill.test/a\n   2026-01-02T00:00:00\n   A mill.\n2. Wheel\n   https://mill.test/b',
  },
} as const;

describe.each(Object.entries(vendors))(
  'web_search with %s',
  (name, { path, asked, answer, text }) => {
    const provider = name as WebSearchOptions['provider'];

    it('sends what the vendor asks for, and returns results', async () => {
      vendor.answers = { [path]: answer };
      const ran = await run(search(provider, { maxResults: 2 }));
      expect(vendor.asked).toMatchObject([{ path, ...asked }]);
      expect(ran.text).toBe(text);
      const { sources } = ran.output.details as { sources: readonly { url: string }[] };
      expect(sources.length).toBe(text.match(/^\d\./gmu)?.length);
      expect(JSON.stringify(ran.output)).not.toContain(apiKey);
    });

    it('finds nothing in an answer without results', async () => {
      vendor.answers = { [path]: {} };
      expect((await run(search(provider))).text).toContain('Nothing was found');
    });

    it('needs a key, unless the service needs none', () => {
      const create = () => webSearch({ provider });
      if (provider === 'duckduckgo') expect(create).not.toThrow();
      else if (provider === 'searxng') expect(create).toThrow("pass 'baseURL', or set");
      else
        expect(create).toThrow(
          `set the environment variable ${name === 'google' ? 'GOOGLE' : name.toUpperCase()}_API_KEY`,
        );
    });
  },
);

describe('web_search', () => {
  const samples = {
    valid: [{ query: 'mill' }],
    invalid: [{}, { query: '' }, { query: 'x'.repeat(401) }],
  };
  for (const { name, run: check } of toolContract(() => search('brave'), samples)) {
    it(name, () => {
      vendor.answers = { [vendors.brave.path]: vendors.brave.answer };
      return check();
    });
  }

  it('leaves out sources without a web address or a title, and shortens long ones', async () => {
    const result = (url: string, title: string, content = '') => ({ url, title, content });
    const bad = [
      result('javascript:alert(1)', 'a'),
      result('nonsense', 'b'),
      result('https://x.test/', ' '),
    ];
    const long = Array.from({ length: 5 }, (_, n) =>
      result(`https://x.test/${n}`, 't'.repeat(500), 'c'.repeat(5_000)),
    );
    vendor.answers = { '/search': { results: [...bad, ...long] } };
    const { text, output } = await run(search('tavily', { maxLength: 1_500 }));
    expect(text.length).toBeLessThanOrEqual(1_500);
    expect(text.match(/^\d\./gmu)).toEqual(['1.']);
    expect((output.details as { sources: unknown[] }).sources).toHaveLength(5);
  });

  it('reports an error that Baidu sends with the status 200, without the key', async () => {
    vendor.answers = {
      '/v2/ai_search/web_search': {
        requestId: 'x',
        code: 216003,
        message: `Authentication error: ${apiKey}`,
      },
    };
    expect(await errorOf(search('baidu'))).toMatchObject({
      code: 'invalidRequest',
      message: 'Baidu refused: 216003 Authentication error: ***.',
    });
  });

  it('needs an engine for Google', () => {
    expect(() => webSearch({ provider: 'google', apiKey })).toThrow('GOOGLE_CSE_ID');
  });
});

describe('github_search', () => {
  // https://docs.github.com/en/rest/search/search, stored copy of version 2022-11-28 read on 2026-11-30.
  const answers = {
    '/search/repositories': {
      total_count: 1,
      incomplete_results: false,
      items: [
        {
          full_name: 'ada/mill',
          html_url: 'https://github.test/ada/mill',
          description: 'A <b>mill</b>.',
          language: 'Rust',
          stargazers_count: 3,
          updated_at: '2026-01-02T03:04:05Z',
        },
      ],
    },
    '/search/issues': {
      items: [
        {
          title: 'The wheel is stuck',
          html_url: 'https://github.test/ada/mill/issues/1',
          body: 'Since\nMonday.',
          state: 'open',
          updated_at: '2026-01-02T03:04:05Z',
        },
      ],
    },
    '/search/code': {
      items: [
        {
          name: 'wheel.rs',
          path: 'src/wheel.rs',
          html_url: 'https://github.test/ada/mill/blob/a/src/wheel.rs',
          repository: { full_name: 'ada/mill' },
        },
      ],
    },
  };
  const create = (key?: string) =>
    githubSearch({ baseURL: vendor.url, ...(key !== undefined && { apiKey: key }) });

  it.each([
    [
      'repositories',
      '1. ada/mill\n   https://github.test/ada/mill\n   Rust, 3 stars, 2026-01-02\n   A mill.',
    ],
    [
      'issues',
      '1. The wheel is stuck\n   https://github.test/ada/mill/issues/1\n   open, 2026-01-02\n   Since Monday.',
    ],
    ['code', '1. src/wheel.rs\n   https://github.test/ada/mill/blob/a/src/wheel.rs\n   ada/mill'],
  ])('searches %s', async (kind, text) => {
    vendor.answers = answers;
    const ran = await runTool(create(apiKey), { query: 'mill & wheel', kind });
    expect(ran.text).toBe(text);
    expect(vendor.asked).toMatchObject([
      {
        path: `/search/${kind}`,
        query: { q: 'mill & wheel', per_page: '5' },
        headers: {
          authorization: `Bearer ${apiKey}`,
          accept: 'application/vnd.github+json',
          'x-github-api-version': '2022-11-28',
        },
      },
    ]);
    expect(JSON.stringify(ran.output)).not.toContain(apiKey);
  });

  it('searches repositories without a token, and no code', async () => {
    vendor.answers = answers;
    expect((await run(create())).text).toContain('ada/mill');
    expect(vendor.asked[0]?.headers['authorization']).toBeUndefined();
    vendor.answers = { '/search/repositories': {} };
    expect((await run(create())).text).toContain('Nothing was found');
    expect(() => create('two words')).toThrow('GITHUB_TOKEN');
  });

  const samples = {
    valid: [{ query: 'mill' }, { query: 'mill', kind: 'issues' }],
    invalid: [
      {},
      { query: 'x'.repeat(257) },
      { query: 'mill', kind: 'code' },
      { query: 'mill', kind: '../user' },
    ],
  };
  for (const { name, run: check } of toolContract(() => create(), samples)) {
    it(name, () => {
      vendor.answers = answers;
      return check();
    });
  }
});

describe('wikipedia', () => {
  // The help of prop=extracts of api.php, stored copy read on 2026-11-26.
  const answer = {
    batchcomplete: true,
    query: {
      pages: [
        {
          pageid: 2,
          ns: 0,
          title: 'Gristmill',
          index: 2,
          extract: 'A gristmill grinds grain.',
          fullurl: 'https://en.wikipedia.org/wiki/Gristmill',
        },
        {
          pageid: 1,
          ns: 0,
          title: 'Watermill',
          index: 1,
          extract: 'A watermill uses hydropower.\nIt is old.',
          fullurl: 'https://en.wikipedia.org/wiki/Watermill',
        },
      ],
    },
  };
  const create = () => wikipedia({ baseURL: vendor.url, contact: 'ada@mill.test' });

  it('searches and returns the introductions, best first', async () => {
    vendor.answers = { '/w/api.php': answer };
    const { text } = await run(create());
    expect(vendor.asked).toMatchObject([
      {
        query: {
          generator: 'search',
          gsrsearch: 'water mill & more',
          gsrlimit: '3',
          prop: 'extracts|info',
          exintro: '1',
          explaintext: '1',
          formatversion: '2',
        },
        headers: { 'user-agent': 'Millrace (ada@mill.test)' },
      },
    ]);
    expect(text).toBe(
      '1. Watermill\n   https://en.wikipedia.org/wiki/Watermill\n   A watermill uses hydropower. It is old.\n2. Gristmill\n   https://en.wikipedia.org/wiki/Gristmill\n   A gristmill grinds grain.',
    );
  });

  it('finds nothing, and reports errors', async () => {
    vendor.answers = { '/w/api.php': { batchcomplete: true } };
    expect((await run(create())).text).toContain('Nothing was found');
    vendor.answers = {
      '/w/api.php': { error: { code: 'maxlag', info: 'Waiting for a database.' } },
    };
    expect(await errorOf(create())).toMatchObject({
      code: 'invalidRequest',
      message: 'Wikipedia refused: Waiting for a database..',
    });
    expect(() => wikipedia({ language: 'en.evil.test/' })).toThrow("'language' must be");
  });
});

describe('arxiv', () => {
  // https://info.arxiv.org/help/api/user-manual.html, stored copy read on 2026-11-26.
  const feed = (entries: string) => `<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title type="html">ArXiv Query</title><id>http://arxiv.org/api/x</id>
<opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">1</opensearch:totalResults>${entries}</feed>`;
  const entry = `<entry xmlns:arxiv="http://arxiv.org/schemas/atom"><id>http://arxiv.org/abs/hep-ex/0307015v1</id>
<published>2003-07-07T13:46:39-04:00</published><title>Multi-Electron Production at
  High $p_T$ &lt; 5 &amp; more</title><summary>  Multi-electron production is studied.
</summary>${['A. One', 'B. Two', 'C. Three', 'D. Four'].map((name) => `<author><name>${name}</name></author>`).join('')}
<link href="http://arxiv.org/abs/hep-ex/0307015v1" rel="alternate" type="text/html"/>
<arxiv:primary_category term="hep-ex" scheme="http://arxiv.org/schemas/atom"/></entry>`;
  const create = () => arxiv({ baseURL: vendor.url });

  it('searches all fields, and returns papers', async () => {
    vendor.answers = { '/api/query': feed(entry) };
    const { text } = await run(create());
    expect(vendor.asked).toMatchObject([
      { query: { search_query: 'all:water AND all:mill AND all:more', max_results: '5' } },
    ]);
    expect(text).toBe(
      '1. Multi-Electron Production at High $p_T$ < 5 & more\n   https://arxiv.org/abs/hep-ex/0307015v1\n   A. One, B. Two, C. Three and 1 more; 2003-07-07; hep-ex\n   Multi-electron production is studied.',
    );
    await run(create(), 'au:hinton AND ti:"capsules"');
    expect(vendor.asked[1]?.query['search_query']).toBe('au:hinton AND ti:"capsules"');
  });

  it('finds nothing, and reports errors', async () => {
    vendor.answers = { '/api/query': feed('') };
    expect((await run(create())).text).toContain('Nothing was found');
    const failed =
      '<entry><id>http://arxiv.org/api/errors#incorrect_id_format</id><title>Error</title><summary>incorrect id format for x</summary></entry>';
    vendor.answers = { '/api/query': feed(failed) };
    expect(await errorOf(create())).toMatchObject({
      code: 'invalidRequest',
      message: 'arXiv refused: incorrect id format for x.',
    });
    vendor.answers = { '/api/query': '{}' };
    expect(await errorOf(create())).toMatchObject({ code: 'invalidResponse' });
  });

  it.each([
    ['tags without an end', '<a>'.repeat(600_000)],
    ['attributes', `<feed ${Array.from({ length: 100_000 }, (_, at) => `a${at}="x"`).join(' ')}/>`],
    ['brackets', '<'.repeat(1_900_000)],
    ['quotes', `<a b="${`'"`.repeat(900_000)}`],
    ['entries', feed('<entry><title>x</title></entry>'.repeat(50_000))],
  ])('X6: answered with many %s, does not hold up other work', async (_what, xml) => {
    vendor.answers = { '/api/query': xml };
    // Parsing takes up to half a second. The machine may also be busy with something else.
    const delays: number[] = [];
    while (delays.length < 5 && Math.min(...delays) > 100) {
      const delay = monitorEventLoopDelay({ resolution: 5 });
      delay.enable();
      await Promise.race([
        run(create()).catch(() => undefined),
        new Promise((resolve) => setTimeout(resolve, 3_000)),
      ]);
      delay.disable();
      delays.push(delay.max / 1e6);
    }
    expect(Math.min(...delays)).toBeLessThan(100);
  });

  it('X17: refuses documents that define entities', async () => {
    vendor.answers = {
      '/api/query': `<!DOCTYPE feed [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>${feed('<entry><title>&b;</title></entry>')}`,
    };
    expect(await errorOf(create())).toMatchObject({
      code: 'invalidResponse',
      message: 'arXiv answered with invalid XML.',
    });
    vendor.answers = { '/api/query': feed('<a>'.repeat(5_000)) };
    expect(await errorOf(create())).toMatchObject({ code: 'invalidResponse' });
  });
});

describe('pubmed', () => {
  // https://www.ncbi.nlm.nih.gov/books/NBK25499/ (ESearch, EFetch), stored copy read on 2026-11-26.
  const found = {
    header: { type: 'esearch', version: '0.3' },
    esearchresult: { count: '1', retmax: '1', idlist: ['11748933', 'x'] },
  };
  const papers = `<?xml version="1.0" ?><!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">
<PubmedArticleSet><PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="1">11748933</PMID><Article><Journal><Title>Cryobiology</Title>
<JournalIssue><PubDate><Year>2001</Year><Month>Jun</Month></PubDate></JournalIssue></Journal><ArticleTitle>Viability of <i>mouse</i> sperm &amp; more.</ArticleTitle>
<Abstract><AbstractText Label="METHODS">We used H<sub>2</sub>O.</AbstractText><AbstractText Label="RESULTS">Fine.</AbstractText></Abstract>
<AuthorList><Author><LastName>Gao</LastName><Initials>D</Initials></Author><Author><CollectiveName>The Group</CollectiveName></Author></AuthorList></Article></MedlineCitation>
<PubmedData><ArticleIdList><ArticleId IdType="pubmed">11748933</ArticleId><ArticleId IdType="doi">10.1006/cryo.2001.2325</ArticleId></ArticleIdList></PubmedData></PubmedArticle></PubmedArticleSet>`;
  const create = () => pubmed({ baseURL: vendor.url, apiKey, contact: 'ada@mill.test' });

  it('searches, fetches and returns papers', async () => {
    vendor.answers = { '/esearch.fcgi': found, '/efetch.fcgi': papers };
    const { text } = await run(create());
    const common = { db: 'pubmed', tool: 'millrace', email: 'ada@mill.test', api_key: apiKey };
    expect(vendor.asked).toMatchObject([
      {
        path: '/esearch.fcgi',
        query: { ...common, term: 'water mill & more', retmode: 'json', retmax: '5' },
      },
      { path: '/efetch.fcgi', query: { ...common, id: '11748933', retmode: 'xml' } },
    ]);
    expect(text).toBe(
      '1. Viability of mouse sperm & more.\n   https://pubmed.ncbi.nlm.nih.gov/11748933/\n   Gao D, The Group; Cryobiology; 2001; doi:10.1006/cryo.2001.2325\n   METHODS: We used H2O. RESULTS: Fine.',
    );
  });

  it('finds nothing, and reports errors without the key', async () => {
    vendor.answers = { '/esearch.fcgi': { esearchresult: { idlist: [] } } };
    expect((await run(create())).text).toContain('Nothing was found');
    vendor.answers = {
      '/esearch.fcgi': { esearchresult: { ERROR: `Search Backend failed: ${apiKey}` } },
    };
    expect(await errorOf(create())).toMatchObject({
      code: 'invalidRequest',
      message: 'PubMed refused: Search Backend failed: ***.',
    });
    vendor.answers = {
      '/esearch.fcgi': (response) =>
        void response.writeHead(429).end('{"error":"API rate limit exceeded","count":"11"}'),
    };
    expect(await errorOf(create())).toMatchObject({
      code: 'rateLimited',
      message: 'PubMed answered with the status 429 Too Many Requests: API rate limit exceeded.',
    });
    vendor.answers = { '/esearch.fcgi': found, '/efetch.fcgi': '<html/>' };
    expect(await errorOf(create())).toMatchObject({ code: 'invalidResponse' });
  });
});
