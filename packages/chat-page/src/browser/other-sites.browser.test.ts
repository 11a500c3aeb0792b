import { describe, expect, it } from '@jest/globals';
import { type Agent, requireApproval, suspend, tool } from 'millrace';
import { finish, text, toolCall } from 'millrace/testing';
import { approvalQueue } from '@millrace/server/approvals';
import type { ServeOptions } from '@millrace/server/node';
import type { Frame, Page } from 'playwright-core';
import { chatPage, type ChatPageOptions } from '../index.js';
import { agentOf, held, violations, visits } from './browser.test-support.js';

const visiting = visits();

/** A page with a strict policy of its own: it allows nothing but the script and the frame. */
const siteOf = (chat: string, attributes: string) => ({
  policy: `default-src 'none'; style-src 'self'; script-src ${chat}; frame-src ${chat}`,
  html: `<!doctype html><html lang="en"><head><title>A shop</title><meta name="viewport" content="width=device-width" />
    <link rel="stylesheet" href="/site.css" /><script async src="${chat}/embed/millrace-chat.js"></script></head>
    <body><main><h1>A shop</h1><millrace-chat src="${chat}/embed" ${attributes}></millrace-chat></main></body></html>`,
});

const css =
  ':root { color-scheme: light dark } body { margin: 1rem; font-family: sans-serif } millrace-chat { max-width: 48rem; height: 40rem }';

interface EmbeddedOptions {
  readonly page?: ChatPageOptions;
  readonly server?: ServeOptions;
  readonly attributes?: string;
  /** The origins that may embed the page. Default: that of the site. */
  readonly embedIn?: (site: string) => readonly string[];
}

/** Serves a chat and a site that embeds it, which have different origins, and opens the site. */
const embedded = async (agent: Agent, options: EmbeddedOptions = {}) => {
  const { page, server, attributes = 'title="Help"', embedIn = (site) => [site] } = options;
  let chat = '';
  const site = await visiting.serveSite((request, response) => {
    const { policy, html } = siteOf(chat, attributes);
    const isStyle = request.url === '/site.css';
    response
      .writeHead(200, {
        'content-type': isStyle ? 'text/css' : 'text/html',
        'content-security-policy': policy,
      })
      .end(isStyle ? css : html);
  });
  const protocols = [chatPage({ uncertain: 'user', ...page, embedIn: embedIn(site) })];
  chat = new URL(await visiting.serve(agent, { protocols, ...server })).origin;
  const visitor = await visiting.visit(site);
  return { ...visitor, chat, site };
};

/** The frame with the chat, once it is there. */
const frameIn = async (page: Page): Promise<Frame> => {
  const element = await page.locator('millrace-chat iframe').elementHandle();
  const frame = await element?.contentFrame();
  if (frame === null || frame === undefined) throw new Error('There is no frame.');
  await frame.locator('#message').waitFor();
  return frame;
};

const askIn = async (frame: Frame, question: string): Promise<void> => {
  await frame.locator('#message').fill(question);
  await frame.locator('#message').press('Enter');
};

const saysIn = (frame: Frame, words: string | RegExp) =>
  frame.locator('.messages').getByText(words).last().waitFor();

const decideLink = 'Open in a tab of its own to decide';

/** The names of what the Tab key reaches in the frame, until it leaves it. */
const reachedIn = async (frame: Frame, page: Page): Promise<readonly string[]> => {
  const reached: string[] = [];
  await frame.locator('.messages').focus();
  for (let count = 0; count < 40; count += 1) {
    await page.keyboard.press('Tab');
    reached.push(
      await frame.evaluate(() => {
        const { activeElement: at } = document;
        return at === null || at === document.body
          ? ''
          : (at.getAttribute('aria-label') ?? at.textContent);
      }),
    );
    if (reached.at(-1) === '') break;
  }
  return reached;
};

/** Clicks all over an element, but for its links. */
const clickAll = async (frame: Frame, page: Page, selector: string): Promise<void> => {
  const element = frame.locator(selector);
  await element.evaluate((it) => {
    for (const link of it.querySelectorAll('a')) link.style.pointerEvents = 'none';
  });
  const box = await element.boundingBox();
  if (box === null) throw new Error('It is not shown.');
  for (let y = 4; y < box.height; y += 12) {
    for (let x = 4; x < box.width; x += 40) await page.mouse.click(box.x + x, box.y + y);
  }
  await element.evaluate((it) => {
    for (const link of it.querySelectorAll('a')) link.style.pointerEvents = '';
  });
};

describe('a chat within another site', () => {
  it('answers piece by piece, in a frame with few rights', async () => {
    const { say, end, answer } = held();
    const { page, chat } = await embedded(agentOf([answer]));
    const frame = await frameIn(page);
    expect(new URL(frame.url()).origin).toBe(chat);
    const element = page.locator('millrace-chat iframe');
    expect(await element.getAttribute('title')).toBe('Help');
    expect(await element.getAttribute('sandbox')).not.toMatch(/top-navigation|modals|downloads/u);
    // The focus stays with the site.
    expect(await page.evaluate(() => document.activeElement?.localName)).toBe('body');
    await askIn(frame, 'Hi');
    say('One, ');
    await saysIn(frame, /One,/u);
    say('two.');
    await saysIn(frame, 'One, two.');
    end();
    await frame.locator('.answer[aria-busy=false]').waitFor();
    expect(await frame.getByRole('button', { name: /Delete|Rename|Export|theme/u }).count()).toBe(
      0,
    );
  });

  it('has the theme of the site, and no script of its address', async () => {
    const { page } = await embedded(agentOf([[text('Hello.')]]), { attributes: 'theme="dark"' });
    const frame = await frameIn(page);
    expect(await frame.evaluate(() => document.documentElement.dataset['theme'])).toBe('dark');
    const element = page.locator('millrace-chat');
    for (const src of ['javascript:document.title="x"', 'data:text/html,x', 'http://', '']) {
      await element.evaluate((it, value) => {
        it.setAttribute('src', value);
      }, src);
      expect(await element.locator('iframe').getAttribute('src')).toBe('about:blank');
    }
    expect(await page.title()).toBe('A shop');
  });

  it('is refused by the browser if its origin is not allowed', async () => {
    const { page, chat } = await embedded(agentOf([]), {
      embedIn: (site) => [site.replace(/\d+$/u, '1')],
    });
    const element = await page.locator('millrace-chat iframe').elementHandle();
    const frame = await element?.contentFrame();
    await page.waitForFunction(() => performance.getEntriesByType('resource').length > 0);
    await frame?.waitForURL(/^chrome-error:/u);
    expect(frame?.url()).not.toContain(chat);
    expect(await visiting.close()).toEqual([expect.stringContaining('frame-ancestors')]);
  });

  it('shows approvals, which mouse and keys cannot give in the frame, but in a tab', async () => {
    let runs = 0;
    const approvals = approvalQueue({ key: 'k'.repeat(32), edits: true });
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      run: () => {
        runs += 1;
        return 'Paid.';
      },
    });
    const agent = agentOf(
      [[toolCall('pay', { to: 'Ann' }), finish()], [text('It is paid.')]],
      [requireApproval(pay, approvals.approve)],
    );
    const { page, screens } = await embedded(agent, { server: { approvals } });
    const frame = await frameIn(page);
    await askIn(frame, 'Pay!');
    const asked = frame.getByRole('group', { name: 'Approval of pay' });
    await asked.getByText('May Pay run with these arguments?').waitFor();
    expect(await asked.innerText()).toMatch(/To\s+Ann/u);
    expect(await asked.locator('button, input, textarea, select, form').count()).toBe(0);

    await clickAll(frame, page, 'section.ask');
    const reached = await reachedIn(frame, page);
    expect(reached).toContain(decideLink);
    expect(reached.filter((name) => /approve|deny/iu.test(name))).toEqual([]);
    for (const path of ['/api/approvals', '/api/chat/a/uncertain']) {
      const status = await frame.evaluate(async (url) => {
        const headers = { 'content-type': 'application/json' };
        return (await fetch(url, { method: 'POST', headers, body: '{}' })).status;
      }, path);
      expect(status).toBe(403);
    }
    expect(runs).toBe(0);
    expect(await screens('embedded-approval', frame)).toEqual([]);

    const opened = page.context().waitForEvent('page');
    await asked.getByRole('link', { name: decideLink }).click();
    const tab = await opened;
    await tab.getByRole('button', { name: 'Approve' }).click();
    await tab.locator('.messages').getByText('It is paid.').waitFor();
    expect(await tab.evaluate(() => window.opener)).toBeNull();
    expect(runs).toBe(1);
    await page.bringToFront();
    await saysIn(frame, 'It is paid.');
  });

  it('shows questions of tools, which are answered in a tab', async () => {
    const order = tool({
      name: 'order',
      description: 'Orders.',
      run: () => suspend({ message: 'Which size?', choices: ['S', 'M'] }),
    });
    const agent = agentOf([[toolCall('order', {}), finish()], [text('Ordered.')]], [order]);
    const { page, screens } = await embedded(agent);
    const frame = await frameIn(page);
    await askIn(frame, 'Order!');
    const asked = frame.getByRole('group', { name: 'Question of order' });
    await asked.getByText('Which size?').waitFor();
    expect(await asked.locator('button, input, textarea, select, form').count()).toBe(0);
    expect(await screens('embedded-question', frame)).toEqual([]);
    expect(await violations(frame)).toEqual([]);
    const opened = page.context().waitForEvent('page');
    await asked.getByRole('link', { name: decideLink }).press('Enter');
    const tab = await opened;
    await tab.getByRole('radio', { name: 'M' }).check();
    await tab.getByRole('button', { name: 'Send answer' }).click();
    await tab.locator('.messages').getByText('Ordered.').waitFor();
    await page.bringToFront();
    await saysIn(frame, 'Ordered.');
  });
});
