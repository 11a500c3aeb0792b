import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { launch } from '../../packages/chat-page/src/browser/browser.test-support.js';
import { node } from '../run.mjs';
import { root } from '../workspaces.mjs';
import { brokenLinks } from './links.mjs';
import { entries } from './pages.mjs';
import { serveFolder } from './serve.mjs';

const site = join(root, 'docs/site/dist');

/** Ignored by git. */
const screenshots = join(root, 'docs/site/.vitepress/temp/screenshots');

let server;
let browser;

beforeAll(async () => {
  const { code, output } = await node(['scripts/docs.mjs'], { quiet: true });
  if (code !== 0) throw new Error(output);
  server = await serveFolder(site);
  browser = await launch();
}, 1_200_000);

afterAll(async () => {
  await browser?.close();
  server?.close();
});

/** What pages complained about, and what they asked other hosts for. */
const problems = [];
const contexts = [];

afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close();
  expect(problems.splice(0)).toEqual([]);
});

const wide = { width: 1280, height: 860 };
const narrow = { width: 390, height: 844 };

const visit = async (path, options = {}) => {
  const context = await browser.newContext({
    viewport: wide,
    reducedMotion: 'reduce',
    colorScheme: 'light',
    ...options,
  });
  contexts.push(context);
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(server.url))
      problems.push(request.url());
  });
  await page.goto(server.url + path, { waitUntil: 'networkidle' });
  // The scripts of the page listen from then on.
  await page.waitForFunction("document.querySelector('#app').__vue_app__ !== undefined");
  return page;
};

const shoot = (page, name) => page.screenshot({ path: join(screenshots, `${name}.png`) });

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules of accessibility that a page breaks, such as contrast and the order of headings. */
const violations = async (page) => {
  await page.evaluate(axe);
  // The search button is called "Search"; the keys that it shows beside that are no part of its name.
  const { violations } = await page.evaluate(
    "axe.run({ rules: { 'label-content-name-mismatch': { enabled: false } } })",
  );
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html} ${nodes[0].failureSummary}`);
};

/** Whether an element is within the window. */
const isInView = (page, selector) =>
  page.locator(selector).evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return top >= 0 && bottom <= element.ownerDocument.defaultView.innerHeight;
  });

const textOf = (page, selector) => page.locator(selector).first().innerText();

describe('the site', () => {
  it('has no broken link', () => {
    const { found, links } = brokenLinks(site);
    expect(found).toEqual([]);
    expect(links).toBeGreaterThan(10_000);
  });

  it('begins with what Millrace is, and with an example', async () => {
    const page = await visit('');
    expect(await textOf(page, 'h1')).toContain('ReAct agents as RxJS streams');
    expect(await textOf(page, '.VPHome .language-ts')).toContain('createAgent');
    expect(await page.getByRole('img', { name: 'A recorded call' }).isVisible()).toBe(true);
    await shoot(page, 'home');
    await page.getByRole('link', { name: 'Start', exact: true }).first().click();
    await page.waitForURL(/\/start\.html$/);
    expect(await textOf(page, 'h1')).toContain('Millrace');
  });

  it('plays a call that a reader stops and resumes', async () => {
    const page = await visit('', { reducedMotion: 'no-preference' });
    const marks = () => page.locator('.live-call circle').count();
    await page.waitForFunction("document.querySelectorAll('.live-call circle').length === 4");
    await page.getByRole('button', { name: 'Unsubscribe' }).click();
    const stopped = await marks();
    expect(await textOf(page, '.live-call figcaption')).toMatch(
      /^Unsubscribed at \d+ ms, which stopped .+ in the same tick\. The journal has \d steps?\.$/,
    );
    expect(await page.locator('.live-call .cut').count()).toBeGreaterThan(0);
    await shoot(page, 'home-stopped');
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.waitForFunction("document.querySelector('.live-call .cursor') === null");
    expect(await textOf(page, '.live-call figcaption')).toMatch(/^Resumed after \d steps? /);
    expect(await marks()).toBeGreaterThan(stopped);
  });

  it('moves nothing for readers who prefer that', async () => {
    const page = await visit('');
    const whole = await page.locator('.live-call circle').count();
    expect(whole).toBe(11);
    expect(await page.locator('.live-call .cursor').count()).toBe(0);
    await page.getByRole('button', { name: 'Unsubscribe' }).click();
    expect(await page.locator('.live-call circle').count()).toBeLessThan(whole);
    await page.getByRole('button', { name: 'Resume' }).click();
    expect(await page.locator('.live-call .cursor').count()).toBe(0);
    expect(await page.locator('.live-call circle').count()).toBe(whole);
    expect(await page.locator('.live-call svg').evaluate((it) => it.getAnimations().length)).toBe(
      0,
    );
  });

  it('loads no search and no page but the home page at first', async () => {
    const page = await visit('');
    const loaded = await page.evaluate(
      "performance.getEntriesByType('resource').map(({ name, decodedBodySize }) => [name, decodedBodySize])",
    );
    expect(loaded.filter(([name]) => /localSearch|\/api_\w+_/.test(name))).toEqual([]);
    const bytes = loaded.reduce((sum, [, size]) => sum + size, 0);
    // Uncompressed: a third of it on the wire. The names of all pages of the API are 190 kB of it.
    expect(bytes).toBeGreaterThan(100_000);
    expect(bytes).toBeLessThan(700_000);
  });

  it.each(
    [390, 1440].flatMap((width) =>
      ['light', 'dark'].map((colorScheme) => ({ width, colorScheme })),
    ),
  )('shows a home page of $width px, $colorScheme', async ({ width, colorScheme }) => {
    const viewport = { width, height: 900 };
    const page = await visit('', { viewport, colorScheme });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    expect(await violations(page)).toEqual([]);
    const { width: drawn } = await page.locator('.live-call svg').boundingBox();
    expect(drawn).toBeGreaterThan(320);
    await page.screenshot({
      path: join(screenshots, `home-${width}-${colorScheme}.png`),
      fullPage: true,
    });
  });

  it('leads through the guide in its order', async () => {
    const page = await visit('guide/');
    expect(await textOf(page, 'h1')).toContain('Guide');
    await shoot(page, 'guide');
    await page.locator('.pager-link.next').click();
    await page.waitForURL(/\/guide\/tools\.html$/);
    await page.getByRole('heading', { level: 1, name: 'Tools' }).waitFor();
  });

  it('finds a heading, and goes there', async () => {
    const page = await visit('');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('searchbox').fill('suspend and resume');
    const result = page.locator('.result', { hasText: 'Suspend and resume' }).first();
    await result.waitFor();
    await shoot(page, 'search');
    await result.click();
    await page.waitForURL(/\/guide\/tools\.html#suspend-and-resume$/);
    await page.locator('#suspend-and-resume').waitFor();
    await page.waitForFunction('window.scrollY > 0');
    expect(await isInView(page, '#suspend-and-resume')).toBe(true);
  });

  it('is searched by keyboard', async () => {
    const page = await visit('guide/');
    await page.keyboard.press('Control+k');
    await page.waitForFunction("document.activeElement.type === 'search'");
    await page.keyboard.type('createAgent');
    await page.locator('.result', { hasText: 'createAgent()' }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => !url.pathname.endsWith('/guide/'));
    expect(await textOf(page, '.vp-doc')).toContain('createAgent');
  });

  it('describes createAgent', async () => {
    const page = await visit('api/millrace/functions/createAgent.html');
    expect(await textOf(page, 'h1')).toContain('createAgent()');
    expect(await textOf(page, '.vp-doc')).toContain("import { createAgent } from 'millrace'");
    await shoot(page, 'api');
    await page.locator('.vp-doc pre').getByRole('link', { name: 'AgentOptions' }).click();
    await page.waitForURL(/\/AgentOptions\.html$/);
    await page
      .getByRole('cell', { name: /^instructions/ })
      .first()
      .waitFor();
    await shoot(page, 'api-options');
  });

  it('has a page for each entry', () => {
    const missing = entries().filter(
      ({ route }) => !existsSync(join(site, 'api', route, 'index.html')),
    );
    expect(missing).toEqual([]);
  });

  it('is dark if the reader prefers that, pictures included', async () => {
    const page = await visit('guide/flow-control.html');
    const picture = page.locator('.vp-doc img').first();
    await picture.scrollIntoViewIfNeeded();
    const light = await picture.screenshot();
    await page.getByRole('switch').first().click();
    expect(await page.locator('html').getAttribute('class')).toContain('dark');
    expect(light.equals(await picture.screenshot())).toBe(false);
    await shoot(page, 'dark');
  });

  it.each([
    '',
    'guide/tools.html',
    'guide/clients.html',
    'packages/',
    'api/millrace/interfaces/AgentOptions.html',
  ])('fits a narrow window: /%s', async (path) => {
    const page = await visit(path, { viewport: narrow });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(narrow.width);
    await shoot(page, `narrow-${path.replaceAll(/\W/g, '-')}`);
  });

  it.each(
    ['light', 'dark'].flatMap((colorScheme) =>
      [
        '',
        'start.html',
        'guide/tools.html',
        'packages/store.html',
        'examples/02-tools.html',
        'api/millrace/functions/createAgent.html',
      ].map((path) => ({ colorScheme, path })),
    ),
  )('is accessible: /$path, $colorScheme', async ({ path, colorScheme }) => {
    const page = await visit(path, { colorScheme });
    expect(await violations(page)).toEqual([]);
  });
});

describe('the search', () => {
  /** The search of the built site, with its options. */
  const openSearch = async () => {
    const chunks = join(site, 'assets/chunks');
    const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndex'));
    const { default: json } = await import(pathToFileURL(join(chunks, file)).href);
    const { default: config } = await import('../../docs/site/.vitepress/config.mjs');
    const { options, searchOptions } = config.themeConfig.search.options.miniSearch;
    const MiniSearch = createRequire(join(root, 'docs/site/package.json'))('minisearch');
    // As in the search box of the theme.
    return MiniSearch.loadJSON(json, {
      fields: ['title', 'titles', 'text'],
      storeFields: ['title', 'titles'],
      searchOptions: { fuzzy: 0.2, prefix: true, ...searchOptions },
      ...options,
    });
  };

  it.each([
    ['human in the loop', '/guide/tools.html#approval', 1],
    ['human in the loop', '/guide/find.html#by-name', 2],
    ['tool throws', '/guide/models.html#why-a-call-failed', 2],
    ['prompt of turn 2', '/packages/devtools.html#the-page', 1],
    ['cost', '/guide/production.html#cost', 1],
    ['maxSteps', '/guide/reference.html#limits', 2],
    ['stack trace', '/guide/models.html#why-a-call-failed', 2],
    ['retry', '/guide/recipes.html#retry-a-call', 1],
    ['timeout', '/guide/models.html#retries-fallbacks-and-time-outs', 2],
    ['abort', '/guide/#stop-or-steer-an-agent', 1],
    ['cancel', '/guide/#stop-or-steer-an-agent', 1],
    ['structured output', '/guide/models.html#structured-output', 1],
    ['memory', '/guide/memory.html#long-term-memory', 2],
    ['streaming', '/guide/#events', 1],
    ['MCP', '/packages/mcp.html#millracemcp', 1],
    ['approve', '/guide/tools.html#approval', 1],
    ['budget', '/guide/production.html#limits', 2],
    ['how to run a tool again after a crash', '/guide/durability.html#uncertain-tool-calls', 3],
    ['how to embed the chat', '/packages/chat-page.html#millracechat-page', 3],
    ['find the prompt of turn 2', '/guide/find.html#by-name', 1],
    ['why a call failed', '/guide/models.html#why-a-call-failed', 1],
    ['createAgent', '/api/millrace/functions/createAgent.html#createagent', 1],
  ])('finds "%s" at %s', async (words, page, rank) => {
    const found = (await openSearch()).search(words).map(({ id }) => id);
    expect(found.slice(0, rank)).toContain(page);
  });
});

describe('the files for language models', () => {
  it('are a list of pages and their text', () => {
    const list = readFileSync(join(site, 'llms.txt'), 'utf8');
    expect(list).toMatch(/^# Millrace\n\n> .+\n\n## Learn\n\n- \[Start\]\(\/start\.md\): /);
    const targets = [...list.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, target]) => target);
    expect(targets.filter((target) => !existsSync(join(site, target)))).toEqual([]);
    expect(targets).toContain('/guide/tools.md');
    const full = readFileSync(join(site, 'llms-full.txt'), 'utf8');
    expect(full).toContain('\n# Tools\n');
    expect(full).not.toContain('\n# Decisions\n');
    expect(full.length).toBeGreaterThan(200_000);
  });
});
