import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import { existsSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Agent, createAgent, type ModelChunk, type Tool } from 'millrace';
import { type ScriptedAnswer, scriptedModel } from 'millrace/testing';
import { type Served, serve, type ServeOptions } from '@millrace/server/node';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Frame,
  type Page,
} from 'playwright-core';
import { firstValueFrom, ReplaySubject, Subject, Subscription } from 'rxjs';
import { chatPage } from '../index.js';

/** Ignored by git. */
const screenshots = join(import.meta.dirname, '../../temp/screenshots');

const programs = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

const executablePath = (): string => {
  const path = process.env['CHROMIUM'] ?? programs.find((program) => existsSync(program));
  if (path !== undefined && existsSync(path)) return path;
  throw new Error(
    'The browser suite needs Chromium. Install it (apt-get install chromium), or set CHROMIUM to the path of a program.',
  );
};

export const launch = (): Promise<Browser> =>
  chromium.launch({
    executablePath: executablePath(),
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  });

/** A model that answers piece by piece, until it is ended. */
export const held = () => {
  const piece$ = new ReplaySubject<ModelChunk>(Infinity);
  return {
    say: (text: string) => {
      piece$.next({ type: 'text', text });
    },
    next: (chunk: ModelChunk) => {
      piece$.next(chunk);
    },
    end: () => {
      piece$.next({ type: 'finish', finish: 'stop' });
      piece$.complete();
    },
    answer: () => piece$,
  };
};

export const agentOf = (answers: readonly ScriptedAnswer[], tools: readonly Tool[] = []): Agent =>
  createAgent({ name: 'Helper', model: scriptedModel(...answers), tools });

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** The rules of accessibility that a page breaks. */
export const violations = async (page: Pick<Page, 'evaluate'>): Promise<string[]> => {
  // A script of the test is no script of the page: it runs beside its policy.
  await page.evaluate(readFileSync(axe, 'utf8'));
  const result = (await page.evaluate('axe.run()')) as {
    violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[];
  };
  return result.violations.map(
    ({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
  );
};

/** Texts and controls that are cut off, or reach out of the window. What scrolls, or ends in an ellipsis, is not. */
const cutOff = (page: Pick<Page, 'evaluate'>): Promise<string[]> =>
  page.evaluate(() => {
    const isText = ({ nodeType, textContent }: Node) =>
      nodeType === Node.TEXT_NODE && textContent?.trim() !== '';
    const rectOf = (element: Element) => {
      if (![...element.childNodes].some(isText)) return element.getBoundingClientRect();
      const range = document.createRange();
      range.selectNodeContents(element);
      return range.getBoundingClientRect();
    };
    const isCut = (element: Element): boolean => {
      const { left, right } = rectOf(element);
      for (let above: Element | null = element; above !== null; above = above.parentElement) {
        const { overflowX, textOverflow } = getComputedStyle(above);
        const box = above.getBoundingClientRect();
        // For screen readers only.
        if (box.width <= 1) return false;
        const scrolls = /auto|scroll/u.test(overflowX) && !above.matches('.messages, nav ul');
        if (scrolls || textOverflow === 'ellipsis') return false;
        const isLimit = overflowX !== 'visible' || above.matches('button, .bubble, .card, .ask');
        if (isLimit && (right > box.right + 1 || left < box.left - 1)) return true;
      }
      return right > innerWidth + 1 || left < -1;
    };
    return [...document.querySelectorAll('body *')]
      .filter(
        (it) =>
          it.matches('button, input, select, textarea, img') || [...it.childNodes].some(isText),
      )
      .filter((it) => it.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
      .filter(isCut)
      .map((it) => `cut off: ${it.outerHTML.slice(0, 200)}`);
  });

/** A person in front of the page. */
export interface Visitor {
  readonly page: Page;
  readonly url: string;
  readonly ask: (text: string) => Promise<void>;
  /** Waits until the page shows this text, in the messages. */
  readonly sees: (text: string | RegExp) => Promise<void>;
  /** Waits until no answer runs. */
  readonly isAnswered: () => Promise<void>;
  readonly answers: () => Promise<readonly string[]>;
  readonly screenshot: (name: string) => Promise<void>;
  /** Takes screenshots of a screen, light and dark, narrow and wide, and returns the rules of accessibility that it, or a frame in it, breaks, and what is cut off. */
  readonly screens: (name: string, frame?: Frame) => Promise<readonly string[]>;
  /** Opens the address of the page in another tab of the same browser. */
  readonly secondTab: () => Promise<Visitor>;
}

/** Opens pages in a browser of the suite, and closes them and their servers after each test. Errors of scripts and of the policy fail it. */
export const visits = () => {
  let launched: Browser | undefined;
  const browser = (): Browser => {
    if (launched === undefined) throw new Error('There is no browser.');
    return launched;
  };
  beforeAll(async () => {
    launched = await launch();
  });
  afterAll(() => launched?.close());
  afterEach(async () => {
    expect(await close()).toEqual([]);
  });
  const closing: (() => unknown)[] = [];
  const errors: string[] = [];
  const visit = async (url: string, options: BrowserContextOptions = {}): Promise<Visitor> => {
    const context = await browser().newContext({ reducedMotion: 'reduce', ...options });
    closing.unshift(() => context.close());
    return tabIn(context, url);
  };
  const tabIn = async (context: BrowserContext, url: string): Promise<Visitor> => {
    const page = await context.newPage();
    page.setDefaultTimeout(15_000);
    page.on('pageerror', (error) => errors.push(error.message));
    page.on('console', (message) => {
      if (/Content Security Policy|Trusted/u.test(message.text())) errors.push(message.text());
    });
    await page.goto(url);
    const field = page.locator('#message');
    const messages = page.locator('.messages');
    return {
      page,
      url,
      // Chromium draws no frames of a tab that another one covers.
      ask: async (text) => {
        await page.bringToFront();
        await field.fill(text);
        await field.press('Enter');
      },
      sees: async (text) => {
        await page.bringToFront();
        await messages.getByText(text).last().waitFor();
      },
      isAnswered: async () => {
        await page.bringToFront();
        await page.locator('.answer[aria-busy=false]').last().waitFor();
        await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
      },
      answers: async () => {
        await page.bringToFront();
        return page.locator('.answer .markdown').allInnerTexts();
      },
      screenshot: async (name) => {
        await page.screenshot({ path: join(screenshots, `${name}.png`) });
      },
      screens: async (name, frame) => {
        const broken: string[] = [];
        for (const colorScheme of ['light', 'dark'] as const) {
          for (const [width, height] of [
            [390, 844],
            [1_440, 900],
          ] as const) {
            await page.emulateMedia({ colorScheme });
            await page.setViewportSize({ width, height });
            await page.screenshot({
              path: join(screenshots, `${name}-${colorScheme}-${width}.png`),
            });
            const found = [...(await violations(page)), ...(await cutOff(page))];
            if (frame !== undefined) found.push(...(await violations(frame)));
            const [wide, high] = await page.evaluate(() => {
              const { scrollWidth, scrollHeight } = document.documentElement;
              return [scrollWidth, scrollHeight] as const;
            });
            broken.push(...found, ...(wide > width ? [`${wide} px at ${width}`] : []));
            // Its parts scroll, and not the page. The site around a frame may.
            if (frame === undefined && high > height) broken.push(`${high} px at ${height}`);
          }
        }
        return broken;
      },
      secondTab: () => tabIn(context, page.url()),
    };
  };
  const close = async (): Promise<readonly string[]> => {
    for (const end of closing.splice(0)) await end();
    return errors.splice(0);
  };
  return {
    visit,
    /** Serves an agent with the page, and returns its address. */
    serve: async (agent: Agent, server: ServeOptions = {}): Promise<string> =>
      (await listening(agent, server, closing)).url,
    /** Serves other pages, and returns their origin. */
    serveSite: (listener: RequestListener): Promise<string> => siteAt(listener, closing),
    /** Serves an agent with the page, and opens it. */
    open: async (
      agent: Agent,
      server: ServeOptions = {},
      options: BrowserContextOptions = {},
    ): Promise<Visitor> => {
      const { url } = await listening(agent, server, closing);
      return visit(url, options);
    },
    /** Serves one agent after the other at the same port, as a server does that starts again. */
    openRestarting: async (
      create: () => { readonly agent: Agent; readonly options: ServeOptions },
    ): Promise<Visitor & { readonly stop: () => void; readonly start: () => Promise<unknown> }> => {
      const serving = (port: number) => {
        const { agent, options } = create();
        return listening(agent, { ...options, port }, closing);
      };
      const first = await serving(0);
      const visitor = await visit(first.url);
      let { stop } = first;
      return {
        ...visitor,
        stop: () => {
          stop();
        },
        start: async () => {
          ({ stop } = await serving(first.port));
        },
      };
    },
    close,
  };
};

const siteAt = async (listener: RequestListener, closing: (() => unknown)[]): Promise<string> => {
  const server = createServer(listener).listen(0, '127.0.0.1');
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}`;
};

const listening = async (
  agent: Agent,
  options: ServeOptions,
  closing: (() => unknown)[],
): Promise<Served & { readonly stop: () => void }> => {
  const served$ = new Subject<Served>();
  const served = firstValueFrom(served$);
  const subscription = new Subscription();
  const stop = () => {
    subscription.unsubscribe();
  };
  closing.push(stop);
  subscription.add(
    serve(agent, {
      port: 0,
      signals: [],
      protocols: [chatPage({ uncertain: 'user' })],
      ...options,
    }).subscribe(served$),
  );
  return { ...(await served), stop };
};
