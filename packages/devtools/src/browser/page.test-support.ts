import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import { pageRoutes } from '@millrace/server/page';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { firstValueFrom, ReplaySubject, take, toArray } from 'rxjs';
import { assets, html } from '#assets';
import type { CallEntry, Exchange, FeedLine } from '../page/protocol.js';

/** Ignored by git. */
export const screenshots = join(import.meta.dirname, '../../temp/screenshots');

const programs = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

const launch = (): Promise<Browser> => {
  const path = process.env['CHROMIUM'] ?? programs.find((program) => existsSync(program));
  if (path === undefined || !existsSync(path)) {
    throw new Error(
      'The browser suite needs Chromium. Install it (apt-get install chromium), or set CHROMIUM to the path of a program.',
    );
  }
  return chromium.launch({
    executablePath: path,
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  });
};

export const token = 'a-token';

/** A request of the page beside the feed. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

/** A server that plays a feed. */
export interface FakeServer {
  readonly url: string;
  readonly asked: readonly Asked[];
  /** The first requests, as soon as there are so many. */
  asks(count: number): Promise<readonly Asked[]>;
  /** Sends lines to each page. A page that connects later gets all of them. */
  send(...lines: readonly FeedLine[]): void;
  /** Answers requests beside the feed. Default: 204. */
  answer: (asked: Asked) => object | undefined;
  /** What was sent to the provider, for each request to a model. Default: nothing is known. */
  exchanges: readonly Exchange[];
  /** Ends the feeds. */
  drop(): void;
  /** Ends the feeds, and accepts no token from now on. */
  refuse(): void;
  close(): Promise<void>;
}

const folder = '/devtools/';

export const serveFeed = async (): Promise<FakeServer> => {
  const routes = pageRoutes({ html, assets, path: folder });
  const feeds = new Set<ServerResponse>();
  const sent: FeedLine[] = [];
  const asked: Asked[] = [];
  const asked$ = new ReplaySubject<Asked>(Infinity);
  const write = (lines: readonly FeedLine[]) =>
    lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  let isRefusing = false;
  const fake: Pick<FakeServer, 'answer' | 'exchanges'> = {
    answer: () => undefined,
    exchanges: [],
  };
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const api = path.startsWith(`${folder}api/`) ? path.slice(folder.length + 4) : undefined;
    if (api === undefined) {
      const route = routes.find((each) => each.path === path);
      if (route === undefined) {
        response.writeHead(404).end();
        return;
      }
      const headers = new Headers({
        'accept-encoding': String(request.headers['accept-encoding']),
      });
      void firstValueFrom(
        route.answer$({ request: new Request(`http://localhost${path}`, { headers }) }),
      ).then(async (answer) => {
        response.writeHead(answer.status, Object.fromEntries(answer.headers));
        response.end(Buffer.from(await answer.arrayBuffer()));
      });
      return;
    }
    if (isRefusing || request.headers.authorization !== `Bearer ${token}`) {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"No."}');
      return;
    }
    if (api === 'feed') {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      response.write(write(sent));
      feeds.add(response);
      response.on('close', () => feeds.delete(response));
      return;
    }
    if (api.startsWith('exchanges/')) {
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(fake.exchanges));
      return;
    }
    let body = '';
    request.on('data', (part) => (body += String(part)));
    request.on('end', () => {
      const one = {
        method: String(request.method),
        path: (request.url ?? '').slice(folder.length + 4),
        body: body === '' ? undefined : JSON.parse(body),
      };
      asked.push(one);
      asked$.next(one);
      const answer = fake.answer(one);
      if (answer === undefined) response.writeHead(204).end();
      else
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return Object.assign(fake, {
    url: `http://127.0.0.1:${port}${folder}`,
    asked,
    asks: (count: number) => firstValueFrom(asked$.pipe(take(count), toArray())),
    send: (...lines: readonly FeedLine[]) => {
      sent.push(...lines);
      for (const feed of feeds) feed.write(write(lines));
    },
    drop: () => {
      for (const feed of feeds) feed.destroy();
    },
    refuse: () => {
      isRefusing = true;
      for (const feed of feeds) feed.destroy();
    },
    close: () =>
      new Promise<void>((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  });
};

export const hello: FeedLine = {
  line: 'hello',
  title: 'Travel guide',
  source: 'agents',
  holdable: ['preReasoning', 'postReasoning', 'preActing', 'actingChunk', 'postActing', 'postCall'],
  breakpoints: [],
};

export const entryOf = (id: string, entry: Partial<CallEntry> = {}): CallEntry => ({
  ...{
    id,
    agent: 'Guide',
    input: 'When does the ferry to Flåm leave?',
    answer: '',
    status: 'done',
  },
  ...{ startedAt: 1_700_000_000_000, tokens: 0, isOpen: true, isInspected: true },
  ...entry,
});

/** A page of the size of a screen. Errors of scripts and of the policy go to a list. */
const openPage = async (
  browser: Browser,
  errors: string[],
  options: BrowserContextOptions = {},
): Promise<Page> => {
  const context = await browser.newContext({
    ...{ reducedMotion: 'reduce', viewport: { width: 1440, height: 860 } },
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on('pageerror', (error) => errors.push(String(error.stack)));
  page.on('console', (message) => {
    if (/Content Security Policy|Trusted/u.test(message.text())) errors.push(message.text());
  });
  return page;
};

/** Starts Chromium for the tests of a file, opens pages, closes them after each test, and fails it for their errors. */
export const inBrowser = () => {
  const running: { browser?: Browser } = {};
  const closing: (() => unknown)[] = [];
  const errors: string[] = [];
  beforeAll(async () => {
    running.browser = await launch();
  });
  afterAll(() => running.browser?.close());
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    expect(errors.splice(0)).toEqual([]);
  });
  const browser = (): Browser => {
    if (running.browser === undefined) throw new Error('There is no browser.');
    return running.browser;
  };
  const openBlank = async (options?: BrowserContextOptions): Promise<Page> => {
    const page = await openPage(browser(), errors, options);
    closing.unshift(() => page.context().close());
    return page;
  };
  return {
    browser,
    openBlank,
    /** Called after the test, before what was given earlier. */
    whenDone: (close: () => unknown): void => void closing.unshift(close),
    /** A page of a fake server. */
    open: async (options: BrowserContextOptions = {}, address = `#token=${token}`) => {
      const server = await serveFeed();
      closing.unshift(() => server.close());
      const page = await openBlank(options);
      await page.goto(server.url + address);
      return { page, server };
    },
  };
};

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules of accessibility that a page breaks. */
export const violations = async (page: Page): Promise<readonly string[]> => {
  // A script of the test is no script of the page: it runs beside its policy.
  await page.evaluate(axe);
  const result = (await page.evaluate('axe.run()')) as {
    violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[];
  };
  return result.violations.map(
    ({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
  );
};

export const shoot = async (page: Page, name: string): Promise<void> => {
  mkdirSync(screenshots, { recursive: true });
  await page.screenshot({ path: join(screenshots, `${name}.png`) });
};

/** How many elements a page has. */
export const elementsOf = (page: Page): Promise<number> =>
  page.evaluate(() => document.querySelectorAll('*').length);
