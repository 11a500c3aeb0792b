import { describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { approvalQueue } from '@millrace/server/approvals';
import { chatServer, type ChatServerOptions } from '@millrace/server/chat';
import { chatPage, type ChatPageOptions } from './index.js';

const shop = 'https://shop.example';

type Sent = RequestInit & { readonly headers?: Readonly<Record<string, string>> };

const serverOf = (options: ChatPageOptions = {}, server: ChatServerOptions = {}) => {
  const agent = createAgent({ name: 'helper', model: scriptedModel([text('Hello.')]) });
  const approvals = approvalQueue({ key: 'k'.repeat(32) });
  const { respond } = chatServer(agent, {
    ...{ approvals, protocols: [chatPage({ uncertain: 'user', ...options })] },
    ...server,
  });
  return (path: string, init: Sent = {}) => respond(new Request(`http://localhost${path}`, init));
};

/** What a browser sends for a frame, or for a script, of a page of another site. */
const fetched = (dest: string) => ({
  headers: {
    'sec-fetch-site': 'cross-site',
    'sec-fetch-mode': dest === 'iframe' ? 'navigate' : 'no-cors',
    'sec-fetch-dest': dest,
  },
});

const policyOf = (response: Response) => response.headers.get('content-security-policy');

describe('a page that other sites embed', () => {
  it('does not exist by default', async () => {
    for (const options of [{}, { embedIn: [] }]) {
      const get = serverOf(options);
      for (const path of ['/embed', '/embed/millrace-chat.js']) {
        const response = await get(path);
        expect([response.status, await response.text()]).toEqual([
          404,
          expect.stringContaining("the option 'embedIn' of chatPage()"),
        ]);
      }
      const page = await get('/');
      expect(policyOf(page)).toContain("frame-ancestors 'none';");
      expect(page.headers.get('x-frame-options')).toBe('DENY');
      const [name] = /page-[\w-]+\.js/u.exec(await page.text()) ?? [];
      expect((await get(`/${name}`)).status).toBe(200);
    }
  });

  it('has a document for frames of exactly these sites, and the page has still none', async () => {
    const get = serverOf({ embedIn: [shop, 'http://127.0.0.1:8080', 'http://[::1]:3000'] });
    const document = await get('/embed', fetched('iframe'));
    expect(document.status).toBe(200);
    expect(policyOf(document)).toContain(
      `; frame-ancestors ${shop} http://127.0.0.1:8080 http://[::1]:3000; `,
    );
    expect(document.headers.get('x-frame-options')).toBeNull();
    expect(document.headers.get('referrer-policy')).toBe('same-origin');
    const page = await get('/');
    expect(policyOf(page)).toContain("frame-ancestors 'none';");
    expect(policyOf(page)).toBe(
      policyOf(document)?.replace(/frame-ancestors [^;]+/u, "frame-ancestors 'none'"),
    );
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    expect((await get('/', fetched('iframe'))).status).toBe(403);
  });

  it.each(['image', 'script', 'object', 'embed', 'frame', 'empty'])(
    'is loaded by a frame only, and not as %s',
    async (dest) => {
      const get = serverOf({ embedIn: [shop] });
      const headers = { ...fetched('iframe').headers, 'sec-fetch-dest': dest };
      expect((await get('/embed', { headers })).status).toBe(403);
      expect((await get('/embed', { ...fetched('iframe'), method: 'POST' })).status).toBe(403);
      expect((await get('/api/chat', fetched('iframe'))).status).toBe(403);
    },
  );

  it.each([
    ['/', '/embed', '/'],
    ['/chat', '/chat/embed', '/chat'],
    ['/chat/', '/chat/embed', '/chat/'],
  ])(
    'of a page at %s is at %s, with the files of the page and a link to it',
    async (path, at, tab) => {
      const get = serverOf({ embedIn: [shop], path });
      const document = await (await get(at)).text();
      const linked = (pattern: RegExp) =>
        new URL(pattern.exec(document)?.[1] ?? 'x:', `http://localhost${at}`).pathname;
      expect(linked(/name="millrace-tab" content="([^"]*)"/u)).toBe(tab);
      expect(linked(/name="millrace-api" content="([^"]*)"/u)).toBe('/api');
      expect((await get(linked(/src="([^"]+\.js)"/u))).status).toBe(200);
      expect((await get(linked(/href="([^"]+\.css)"/u))).status).toBe(200);
      expect(await (await get(path)).text()).toContain('name="millrace-tab" content=""');
      expect((await get(`${at}/millrace-chat.js`)).status).toBe(200);
    },
  );

  it('is for users, and its script is for every site', async () => {
    const get = serverOf({ embedIn: [shop] }, { user: () => undefined });
    expect((await get('/embed', fetched('iframe'))).status).toBe(401);
    const script = await get('/embed/millrace-chat.js', fetched('script'));
    expect(script.status).toBe(200);
    expect(script.headers.get('cross-origin-resource-policy')).toBe('cross-origin');
    expect(script.headers.get('cache-control')).toBe('public, max-age=3600');
    expect(script.headers.get('content-type')).toContain('text/javascript');
    expect(await script.text()).toContain('millrace-chat');
    const [name] = /page-[\w-]+\.js/u.exec(await (await serverOf()('/')).text()) ?? [];
    expect((await get(`/${name}`, fetched('script'))).status).toBe(403);
  });

  it.each([
    'https://shop.example',
    ['https://shop.example/'],
    ['https://shop.example/chat'],
    ['https://*.shop.example'],
    ['*'],
    ['null'],
    ['shop.example'],
    ['https:'],
    ['HTTPS://shop.example'],
    ['https://shop.example:443'],
    ['https://ann@shop.example'],
    ["https://shop.example; script-src 'unsafe-inline'"],
    ['https://a;b'],
    ['https://a,b'],
    ["https://'self'"],
    ['file:///a'],
    ['data:text/html,x'],
    [1],
    Array.from({ length: 51 }, (_, at) => `https://${at}.example`),
  ])('refuses what is no list of origins: %j', (embedIn) => {
    const create = () => chatPage({ embedIn } as ChatPageOptions);
    expect(create).toThrow(
      /^chatPage\(\): 'embedIn' must be a list of up to 50 origins .*such as \['https:\/\/shop\.example'\]/u,
    );
    expect(create).toThrow(expect.objectContaining({ code: 'config' }));
  });

  it('names the entry that is no origin', () => {
    expect(() => chatPage({ embedIn: [shop, 'shop.example'] })).toThrow(
      'This one is wrong: "shop.example".',
    );
  });

  it('is refused in words by a frame of another site', async () => {
    const get = serverOf({ embedIn: [shop] });
    const framedBy = (referer: string) => ({
      headers: { ...fetched('iframe').headers, referer },
    });
    for (const [path, referer, words] of [
      ['/embed', 'https://evil.example/a', "Pages of 'https://evil.example' may not show this"],
      ['/', `${shop}/`, 'This page may not be shown within another site.'],
    ] as const) {
      const refused = await get(path, framedBy(referer));
      expect([refused.status, refused.headers.get('content-type')]).toEqual([
        403,
        'text/html; charset=utf-8',
      ]);
      // Otherwise the browser would show a page of its own.
      expect(policyOf(refused)).not.toContain('frame-ancestors');
      expect(refused.headers.get('x-frame-options')).toBeNull();
      const text = (await refused.text()).replaceAll('&#39;', "'");
      expect(text).toContain(words);
      expect(text).not.toContain('{');
    }
    expect((await get('/embed', framedBy(`${shop}/`))).status).toBe(200);
  });
});

const post = (path: string, body: unknown, referer?: string, method = 'POST') =>
  [
    path,
    {
      method,
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...(referer && { referer }) },
    },
  ] as const;

const frame = 'http://localhost/embed';
const question = { id: 'q', role: 'user', parts: [{ type: 'text', text: 'Hi' }] };
const result = {
  id: 'm',
  role: 'assistant',
  parts: [
    { type: 'tool-order', toolCallId: 't', state: 'output-available', input: {}, output: 'Yes.' },
  ],
};
const approved = {
  id: 'm',
  role: 'assistant',
  parts: [
    {
      ...{ type: 'tool-order', toolCallId: 't', state: 'approval-responded', input: {} },
      approval: { id: 'a', approved: true },
    },
  ],
};

describe('the server of an embedded page', () => {
  it.each([
    ['a verdict', post('/api/approvals', { token: 'x', approved: true }, frame)],
    ['an outcome', post('/api/chat/a/uncertain', { toolCallId: 't', outcome: 'failed' }, frame)],
    ['a result', post('/api/chat', { id: 'a', messages: [question, result] }, frame)],
    ['a single result', post('/api/chat', { id: 'a', message: result }, frame)],
    ['a verdict in a message', post('/api/chat', { id: 'a', messages: [approved] }, frame)],
    [
      'parts that are no list',
      post('/api/chat', { id: 'a', messages: [{ ...result, parts: {} }] }, frame),
    ],
    ['a title', post('/api/chat/a', { title: 'x' }, frame, 'PATCH')],
    ['a deletion', post('/api/chat/a', {}, frame, 'DELETE')],
    [
      'a frame behind a proxy',
      post('/api/approvals', {}, 'https://a.example/ai/embed/?theme=dark'),
    ],
  ])('refuses %s from its frame, and from nowhere else', async (_, [path, init]) => {
    const refused = await serverOf({ embedIn: [shop] })(path, init);
    const { error } = (await refused.json()) as { error: string };
    expect([refused.status, error]).toEqual([
      403,
      'A page within another site cannot decide. Open the chat in a tab of its own.',
    ]);
    for (const referer of ['http://localhost/', 'http://localhost/embedded', 'x', '']) {
      const { headers, ...rest } = init;
      const other = await serverOf({ embedIn: [shop] })(path, {
        ...rest,
        headers: { ...headers, referer },
      });
      expect(other.status).not.toBe(403);
    }
    expect((await serverOf()(path, init)).status).not.toBe(403);
  });

  it('takes questions from its frame, with the message before them', async () => {
    const ask = serverOf({ embedIn: [shop] });
    const before = { id: 'm', role: 'assistant', parts: [] };
    const answer = await ask(...post('/api/chat', { id: 'a', messages: [question] }, frame));
    expect(await answer.text()).toContain('Hello.');
    for (const path of ['/api/chat', '/api/chat/a/stop', '/api/chat/a/steer', '/api/chat/a/head']) {
      const body = { id: 'b', messages: [before, question], text: 'x', at: 'm' };
      expect((await ask(...post(path, body, frame))).status).not.toBe(403);
    }
    expect((await ask('/api/chat/a', { headers: { referer: frame } })).status).toBe(200);
  });
});
