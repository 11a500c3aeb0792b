// What the model got, why a call failed, and the calls of a conversation: for people, with the keyboard alone, too.
import { describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { forked } from '../page/model/forks.test-support.js';
import { eventsOf, feedOf, forecaster, key } from '../page/model/requests.test-support.js';
import { eventOf } from '../page/model/runs.test-support.js';
import type { FeedLine } from '../page/protocol.js';
import {
  entryOf,
  type FakeServer,
  hello,
  inBrowser,
  shoot,
  token,
  violations,
} from './page.test-support.js';

const { open, whenDone } = inBrowser();

const screens = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [1440, 390].map((width) => ({ colorScheme, width })),
);

const viewOf = ({ colorScheme, width }: (typeof screens)[number]) => ({
  ...{ colorScheme, viewport: { width, height: 860 } },
  permissions: ['clipboard-read', 'clipboard-write'],
});

const items = feedOf(eventsOf(forecaster().stream$('Boat or train?', { callId: 'c' })));

const failure = {
  ...{ name: 'MillraceError', code: 'auth', message: 'The key is refused.', status: 401 },
  stack:
    'MillraceError: The key is refused.\n    at ask (/app/ask.ts:4:2)\n    at node:internal/x:1:1',
  cause: {
    name: 'Error',
    message: 'HTTP 401',
    stack: 'Error: HTTP 401\n    at send (/app/send.ts:9:1)',
  },
};

const startedAt = new Date(2026, 10, 30, 9, 5, 7).getTime();

/** A conversation of two calls, and a call that has failed. */
const lines: readonly FeedLine[] = [
  hello,
  {
    line: 'calls',
    calls: [
      entryOf('c', { input: 'Boat or train?', startedAt, sessionId: 'trip', userId: 'ann' }),
      entryOf('b', {
        ...{ input: 'Hello', startedAt: startedAt - 9, sessionId: 'trip', userId: 'ann' },
        failedTools: 1,
      }),
      entryOf('d', {
        ...{ input: 'Book it.', status: 'failed', reason: 'auth', userId: 'bob' },
        startedAt: startedAt - 60_000,
      }),
    ],
  },
  { line: 'log', id: 'c', from: 0, items },
  {
    ...{ line: 'log', id: 'd', from: 0 },
    items: [
      eventOf('preCall', 0, { callId: 'd', rootId: 'd', input: [] }),
      eventOf('preReasoning', 1, {
        ...{ callId: 'd', rootId: 'd', options: { system: 'Book what is asked for.' } },
        messages: [{ id: 'u', role: 'user', content: [{ type: 'text', text: 'Book it.' }] }],
      }),
      eventOf('error', 2, { callId: 'd', rootId: 'd', error: failure }),
    ],
  },
];

const opened = async (screen: (typeof screens)[number] = { colorScheme: 'light', width: 1440 }) => {
  const { page, server } = await open(viewOf(screen));
  server.send(...lines);
  await page.locator('[data-call=c]').waitFor();
  return { page, server };
};

const prompt = (page: Page) => page.getByTestId('requests');

const copied = (page: Page): Promise<string> => page.evaluate('navigator.clipboard.readText()');

/** No violations, nothing that is cut off at the side, and a picture. */
const checked = async (
  page: Page,
  name: string,
  { colorScheme, width }: (typeof screens)[number],
) => {
  expect(await violations(page)).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
  await shoot(page, `${name}-${colorScheme}-${width}`);
};

describe.each(screens)('in $colorScheme, $width pixels wide', (screen) => {
  it('the prompt of turn 2 is two clicks away, with what is new in it', async () => {
    const { page } = await opened(screen);
    await page.getByRole('tab', { name: 'Prompt' }).click();
    await prompt(page).getByRole('button', { name: 'Turn 2', exact: true }).click();
    await prompt(page).getByText('Since Turn 1: 2 new messages, another system prompt.').waitFor();
    expect(await prompt(page).locator('ins').first().innerText()).toContain('Answer');
    await prompt(page).getByRole('button', { name: 'Tools (2)' }).click();
    await prompt(page).getByText('Sells tickets.').waitFor();
    await checked(page, 'prompt', screen);
    await prompt(page).getByRole('button', { name: 'Raw request' }).click();
    await prompt(page).getByRole('button', { name: 'Raw answer' }).click();
    await prompt(page).getByRole('button', { name: 'curl', exact: false }).last().click();
    expect(await prompt(page).innerText()).not.toContain(key);
    await checked(page, 'prompt-raw', screen);
  });

  it('the reason of a failed call is two clicks away, with its stack and cause', async () => {
    const { page } = await opened(screen);
    await page.locator('[data-call=d] .call-main').click();
    await page.getByRole('button', { name: 'Show stack and cause' }).click();
    const cause = page.getByRole('region', { name: 'Cause' });
    expect(await cause.innerText()).toMatch(/HTTP 401[\s\S]*\/app\/send\.ts/u);
    const error = await page.getByRole('region', { name: 'Error' }).innerText();
    expect(error).toMatch(/auth · 401[\s\S]*The key is refused\.[\s\S]*\/app\/ask\.ts/u);
    expect(error).not.toContain('node:internal');
    await checked(page, 'failed', screen);
    await page.getByTestId('conversation').getByRole('button', { name: 'Prompt' }).click();
    await prompt(page).getByText('Book what is asked for.').waitFor();
    await prompt(page).getByText('None. Failed: auth. The key is refused.').waitFor();
  });

  it('calls are listed by conversation, with their time, session and user', async () => {
    const { page } = await opened(screen);
    const rows = page.getByRole('list', { name: 'Calls' }).getByRole('listitem');
    const texts = (await rows.allInnerTexts()).map((text) => text.replaceAll(/\s+/gu, ' '));
    expect(texts[0]).toBe('2 calls · session trip · ann');
    expect(texts.slice(1).map((text) => /\d\d:\d\d:\d\d/u.test(text))).toEqual([true, true, true]);
    expect(texts[3]).toContain('bob');
    expect(texts.map((text) => text.includes('done 1 tool failed'))).toEqual([
      ...[false, false, true, false],
    ]);
    // With few lanes, the conversation has the room.
    const [chat, diagram] = await Promise.all(
      ['conversation', 'diagram'].map((id) => page.getByTestId(id).boundingBox()),
    );
    expect(chat?.width).toBeGreaterThanOrEqual(Math.min(diagram?.width ?? 0, 860) - 2);
    await checked(page, 'conversation', screen);
  });
});

describe('the prompt', () => {
  it('is opened from its answer, and copied without keys', async () => {
    const { page } = await opened();
    const chat = page.getByTestId('conversation');
    await chat.getByRole('button', { name: 'Prompt' }).first().click();
    await prompt(page).getByRole('article', { name: 'Turn 1' }).waitFor();
    for (const [name, expected] of [
      ['Copy as curl', /^curl "\$BASE_URL\/chat\/completions"[\s\S]*\$API_KEY/u],
      ['Copy request', /"system": "You plan journeys\. It's the key \$API_KEY\./u],
      ['Copy answer', /"tool_call"/u],
    ] as const) {
      await prompt(page).getByRole('button', { name }).click();
      await prompt(page)
        .getByRole('button', { name: `${name}: copied` })
        .waitFor();
      expect(await copied(page)).toMatch(expected);
      expect(await copied(page)).not.toContain(key);
    }
  });

  it('is copied as the provider got it, if the devtools have seen that', async () => {
    const { page, server } = await opened();
    server.exchanges = [
      {
        ...{ at: 0, url: 'https://acme.example/v1', headers: {}, body: '{}', omitted: 0 },
        response: { at: 12, status: 429, body: '{"error":"Slow down."}', omitted: 0 },
      },
      {
        ...{ at: 1_012 },
        ...{ url: 'https://acme.example/v1', headers: { authorization: 'Bearer [redacted]' } },
        ...{ body: '{"model":"acme-1","prompt":"Hi"}', omitted: 0 },
        response: { at: 1_020, status: 200, body: 'data: {"delta":"Hello"}', omitted: 7 },
      },
    ];
    const at = { at: 9, callId: 'c', messageId: 'c/2' };
    const mark = { mark: 'request', id: 'c#r2', phase: 'started', model: 'acme-1', ...at } as const;
    server.send({ line: 'log', id: 'c', from: 0, items: [...items, mark] });
    await page.getByRole('tab', { name: 'Prompt' }).click();
    for (const name of ['Raw request', 'Raw answer', 'curl'])
      await prompt(page).getByRole('button', { name, exact: false }).last().click();
    await prompt(page).getByText('POST https://acme.example/v1 · attempt 2').waitFor();
    await prompt(page).getByText('{"model":"acme-1","prompt":"Hi"}', { exact: true }).waitFor();
    await prompt(page).getByText('data: {"delta":"Hello"}', { exact: true }).waitFor();
    await prompt(page).getByText('200 · after 8 ms · 7 more are not kept').waitFor();
    await prompt(page).getByText('429 · after 12 ms · sent again 1.0 s later').waitFor();
    await prompt(page).getByText('{"error":"Slow down."}', { exact: true }).waitFor();
    await prompt(page).getByRole('button', { name: 'Copy as curl' }).click();
    await prompt(page).getByRole('button', { name: 'Copy as curl: copied' }).waitFor();
    expect(await copied(page)).toContain(`-H 'authorization: Bearer '"$API_KEY"''`);
    expect(await violations(page)).toEqual([]);
    await shoot(page, 'prompt-sent');
    // What is shown stays as it is when news of the call arrives.
    await page.evaluate(() => {
      const { replaceAll } = String.prototype;
      Object.assign(globalThis, { cleaned: 0 });
      String.prototype.replaceAll = function (this: string, ...given: [never, never]) {
        if (this.includes('acme-1')) Object.assign(globalThis, { cleaned: 1 });
        return replaceAll.apply(this, given);
      };
    });
    server.send({ line: 'notice', text: 'News of the call.' });
    await page.getByText('News of the call.').waitFor();
    expect(await page.evaluate(() => Reflect.get(globalThis, 'cleaned') as unknown)).toBe(0);
  });

  it('is reached with the keyboard alone', async () => {
    const { page } = await opened();
    await page.keyboard.press('2');
    await prompt(page).getByRole('article', { name: 'Turn 2' }).waitFor();
    await prompt(page).getByRole('button', { name: 'Previous request' }).focus();
    await page.keyboard.press('Enter');
    await prompt(page).getByRole('article', { name: 'Turn 1' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await prompt(page).getByRole('article', { name: 'Turn 2' }).waitFor();
    const before = prompt(page).getByRole('button', { name: 'Show 1 message as before' });
    await before.focus();
    await page.keyboard.press('Space');
    await prompt(page).getByText('Boat or train?').waitFor();
    // The failed call, its reason and its stack.
    await page.keyboard.press('1');
    await page.locator('.rows').focus();
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.getByRole('button', { name: 'Show stack and cause' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: 'Cause' }).waitFor();
  });
});

describe('a link', () => {
  it('shows its call, also in another tab, and asks for one that is not in the list', async () => {
    const { page, server } = await opened();
    await page.locator('[data-call=d] .call-main').click();
    expect(new URL(page.url()).hash).toBe('#call=d');
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByRole('button', { name: 'Copy link: copied' }).waitFor();
    const link = await copied(page);
    expect(link).toBe(`${server.url}#token=${token}&call=d`);
    const other = await page.context().newPage();
    whenDone(() => other.close());
    await other.goto(link);
    await other.locator('[data-call=d].shown').waitFor();
    expect(new URL(other.url()).hash).toBe('#call=d');
    await other.evaluate(() => (location.hash = '#call=old'));
    const asksFor = (id: string) => server.asked.some(({ path }) => path === `calls/${id}`);
    await other.waitForFunction(() => document.querySelector('.shown') !== null);
    server.send({ line: 'calls', calls: [entryOf('old', { startedAt: 1 })] });
    await other.locator('[data-call=old].shown').waitFor();
    expect([asksFor('d'), asksFor('old')]).toEqual([true, true]);
  });
});

describe('the address of a call', () => {
  it('opens a call of a store that is not in the list', async () => {
    const { page, server } = await open({}, `#token=${token}&call=old`);
    server.answer = ({ path }) => {
      if (path === 'calls/old')
        server.send(
          { line: 'calls', calls: [entryOf('old', { startedAt: 1 })] },
          { line: 'log', id: 'old', from: 0, items },
        );
      return undefined;
    };
    server.send({ ...hello, source: 'store', pageSize: 1 } as FeedLine, {
      ...{ line: 'calls', calls: [entryOf('new')] },
    });
    await page.locator('[data-call=old].shown').waitFor();
    await page.getByTestId('conversation').getByText('Boat or train?').waitFor();
    expect(server.asked.filter(({ path }) => path === 'calls/old').length).toBeGreaterThan(0);
  });
});

const older = async (page: Page, server: FakeServer, id: string): Promise<void> => {
  server.send({ line: 'calls', calls: [entryOf(id, { startedAt: 2 })] });
  await page.locator('.call-list').evaluate((list) => (list.scrollTop = list.scrollHeight));
  await page.locator(`[data-call=${id}]`).waitFor();
};

describe('a store', () => {
  it('has all of its calls, by page and by search', async () => {
    const { page, server } = await open();
    server.answer = ({ path }) => {
      if (path === 'older') return { isMore: server.asked.length < 2 };
      return path.includes('until') ? { ids: ['z'] } : { ids: [], until: 7 };
    };
    const calls = Array.from({ length: 200 }, (_, at) =>
      entryOf(`c${at}`, { startedAt: 9_000 + at }),
    );
    server.send({ ...hello, source: 'store', pageSize: 200 } as FeedLine, { line: 'calls', calls });
    const more = page.getByRole('button', { name: 'Show 200 older calls' });
    await more.click();
    await older(page, server, 'x');
    await more.click();
    await more.waitFor({ state: 'detached' });
    await older(page, server, 'z');
    await page.getByRole('searchbox').fill('needle');
    await page.getByText('No matching calls.').waitFor();
    await page.getByRole('button', { name: 'Search older calls' }).click();
    await page.locator('[data-call=z]').waitFor();
    await page.getByRole('button', { name: 'Search older calls' }).waitFor({ state: 'detached' });
    expect(server.asked.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['older', 'older', 'search?q=needle', 'search?q=needle&until=7']),
    );
    expect(await violations(page)).toEqual([]);
  });
});

describe('a fork that edits a message with tool calls', () => {
  it('is right in the conversation and in the difference', async () => {
    const { original, fork } = await forked('2', undefined, false, 'First I look it up.');
    const { page, server } = await open();
    const forkedFrom = { callId: 'c', at: '2' };
    server.send(
      hello,
      { line: 'calls', calls: [entryOf('c'), entryOf('f', { startedAt: startedAt, forkedFrom })] },
      { line: 'log', id: 'c', from: 0, items: original },
      { line: 'log', id: 'f', from: 0, items: fork },
    );
    const chat = page.getByTestId('conversation');
    await chat.getByText('First I look it up.').waitFor();
    const parts = await chat.getByRole('article').allInnerTexts();
    expect(parts.map((text) => text.split('\n')[0])).toEqual([
      ...['User', 'Guide · message 1', 'weather', 'ferry', 'Guide · message 2'],
    ]);
    expect(parts[1]).toMatch(/edited[\s\S]*First I look it up\./u);
    await page.getByRole('button', { name: 'Fork at 2: compare' }).click();
    const difference = page.getByTestId('difference');
    await difference.getByText('The first difference: Message 1.').waitFor();
    expect(await difference.getByText('the same').count()).toBe(3);
    expect(await violations(page)).toEqual([]);
    await shoot(page, 'fork-of-message');
  });
});
