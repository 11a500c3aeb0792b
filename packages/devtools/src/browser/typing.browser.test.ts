import { describe, expect, it } from '@jest/globals';
import type { Route } from 'playwright-core';
import { forked } from '../page/model/forks.test-support.js';
import { eventOf, travel } from '../page/model/runs.test-support.js';
import type { FeedLine } from '../page/protocol.js';
import { entryOf, type FakeServer, hello, inBrowser } from './page.test-support.js';

const { open } = inBrowser();

const show = (server: FakeServer, items = travel().items) =>
  server.send(
    hello,
    { line: 'calls', calls: [entryOf('c')] },
    { line: 'log', id: 'c', from: 0, items },
  );

/** Calls that are held before a tool runs, in their order. */
const held = (...ids: readonly string[]): FeedLine => ({
  line: 'holds',
  holds: ids.map((id) => ({
    ...{ id, rootId: 'c', callId: 'c', agent: ['Guide'], since: 0 },
    event: eventOf('preActing', 0, { toolCall: { name: 'weather', input: { city: 'Flåm' } } }),
  })),
});

describe('what a person types is not replaced by an update', () => {
  it('of a held event, while the connection is lost and found again', async () => {
    const { page, server } = await open();
    show(server);
    server.send(held('h1'));
    const editor = page.getByRole('textbox', { name: 'The event as JSON' });
    await editor.fill((await editor.inputValue()).replace('Flåm', 'Oslo'));
    server.drop();
    await page.getByText('Connection lost, trying again').waitFor();
    await page.getByText('Connected').waitFor();
    server.send({ line: 'notice', text: 'Drawn again.' });
    await page.getByText('Drawn again.').waitFor();
    expect(await editor.inputValue()).toContain('Oslo');
    expect(await editor.evaluate((field) => field === document.activeElement)).toBe(true);
    await page.keyboard.press('F8');
    const [asked] = await server.asks(1);
    expect(JSON.stringify(asked?.body)).toContain('Oslo');
  });

  it('of a fork, when another call begins', async () => {
    const { original } = await forked('2', 'Rain.');
    const { page, server } = await open();
    server.answer = ({ path }) => (path.endsWith('fork') ? { id: 'f' } : undefined);
    show(server, original);
    await page.getByRole('button', { name: 'Guide · message 2' }).click();
    await page.getByRole('button', { name: 'Fork from here' }).click();
    const dialog = page.getByRole('dialog', { name: 'Fork from step 2' });
    await dialog.getByRole('textbox').fill('Rain.');
    const startedAt = 1_800_000_000_000;
    server.send({ line: 'calls', calls: [entryOf('new', { startedAt, isOpen: false })] });
    await page.locator('[data-call=new].shown').waitFor();
    expect(await dialog.getByRole('textbox').inputValue()).toBe('Rain.');
    await dialog.getByRole('button', { name: 'Fork with 1 edit' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(server.asked.at(-1)).toMatchObject({ path: 'calls/c/fork', body: { at: '2' } });
  });

  it('of a price, digit by digit', async () => {
    const { page, server } = await open();
    show(server);
    await page.getByRole('button', { name: 'Settings' }).click();
    const field = page.getByRole('spinbutton', { name: /input tokens/u });
    await field.fill('');
    for (const [index, digit] of [...'0.05'].entries()) {
      await field.press(digit);
      server.send({ line: 'notice', text: `Drawn ${index}.` });
      await page.getByText(`Drawn ${index}.`).waitFor();
    }
    expect(await field.inputValue()).toBe('0.05');
  });

  it('of breakpoints, before the server has answered', async () => {
    const { page, server } = await open();
    show(server);
    await page.getByRole('tab', { name: 'Breakpoints' }).click();
    await page.getByRole('checkbox', { name: 'preActing' }).check();
    server.send({ line: 'notice', text: 'Drawn again.' });
    await page.getByText('Drawn again.').waitFor();
    expect(await page.getByRole('checkbox', { name: 'preActing' }).isChecked()).toBe(true);
    await page.getByRole('checkbox', { name: 'postActing' }).check();
    expect((await server.asks(2)).at(-1)?.body).toEqual([
      { type: 'preActing' },
      { type: 'postActing' },
    ]);
  });
});

describe('what a person does to a held call is sent, or the page says that it was not', () => {
  const opened = async (...ids: readonly string[]) => {
    const { page, server } = await open();
    show(server);
    server.send(held(...ids));
    const editor = page.getByRole('textbox', { name: 'The event as JSON' });
    const edit = async () => editor.fill((await editor.inputValue()).replace('Flåm', 'Oslo'));
    return { page, server, editor, edit };
  };

  it('by a key at the moment in which the call is first shown', async () => {
    const { page, server } = await open();
    show(server);
    await page.locator('[data-call=c].shown').waitFor();
    await page.evaluate(() => {
      new MutationObserver((_, observer) => {
        if (document.querySelector('[data-testid=hold]') === null) return;
        observer.disconnect();
        window.dispatchEvent(new KeyboardEvent('keydown', { key: 'F8' }));
      }).observe(document.body, { childList: true, subtree: true });
    });
    server.send(held('h1'));
    expect(await server.asks(1)).toMatchObject([
      { path: 'holds/h1', body: { action: 'continue' } },
    ]);
  });

  it('by a click before the page has drawn what was typed', async () => {
    const { editor, server } = await opened('h1');
    await editor.evaluate((field) => {
      if (!(field instanceof HTMLTextAreaElement)) return;
      field.value = field.value.replace('Flåm', 'Oslo');
      field.dispatchEvent(new InputEvent('input', { bubbles: true }));
      field
        .closest('section')
        ?.querySelector('button.primary')
        ?.dispatchEvent(new MouseEvent('click'));
    });
    const [asked] = await server.asks(1);
    expect(JSON.stringify(asked?.body)).toContain('Oslo');
  });

  it('if another hold takes the place of the edited one', async () => {
    const { page, server, editor, edit } = await opened('h1', 'h2');
    await edit();
    server.send(held('h2'));
    await page
      .getByText('The call is no longer held. Your edit of preActing was not sent.')
      .waitFor();
    expect(await editor.inputValue()).toContain('Flåm');
    await page.keyboard.press('F8');
    expect(await server.asks(1)).toEqual([
      { method: 'POST', path: 'holds/h2', body: { action: 'continue' } },
    ]);
  });

  it('once, however often the key is pressed before the next event is shown', async () => {
    const { page, server, edit } = await opened('h1', 'h2');
    await edit();
    await page.keyboard.press('F8');
    await page.keyboard.press('F8');
    await server.asks(1);
    server.send(held('h2'));
    await page.getByText('more held').waitFor({ state: 'detached' });
    await page.keyboard.press('F10');
    expect((await server.asks(2)).map(({ path }) => path)).toEqual(['holds/h1', 'holds/h2']);
    expect(await page.getByText('was not sent').count()).toBe(0);
  });

  it('again, if the program did not answer', async () => {
    const { page, server, editor, edit } = await opened('h1');
    await edit();
    await page.route('**/api/holds/*', (route) => route.abort(), { times: 1 });
    await page.keyboard.press('F8');
    await page.getByText('The program does not answer: this may not have arrived.').waitFor();
    expect(await editor.inputValue()).toContain('Oslo');
    await page.keyboard.press('F8');
    const [asked] = await server.asks(1);
    expect(JSON.stringify(asked?.body)).toContain('Oslo');
  });

  it('after the breakpoints that were set before', async () => {
    const { page, server } = await opened('h1');
    const waiting = new Promise<Route>((resolve) => {
      void page.route('**/api/breakpoints', resolve, { times: 1 });
    });
    await page.getByRole('tab', { name: 'Breakpoints' }).click();
    await page.getByRole('checkbox', { name: 'preActing' }).check();
    await page.getByRole('checkbox', { name: 'postActing' }).check();
    await page.keyboard.press('F8');
    const route = await waiting;
    expect(server.asked).toEqual([]);
    await route.continue();
    expect((await server.asks(3)).map(({ path, body }) => [path, body])).toEqual([
      ['breakpoints', [{ type: 'preActing' }]],
      ['breakpoints', [{ type: 'preActing' }, { type: 'postActing' }]],
      ['holds/h1', { action: 'continue' }],
    ]);
  });
});
