import { describe, expect, it } from '@jest/globals';
import { forked } from '../page/model/forks.test-support.js';
import { eventOf, travel } from '../page/model/runs.test-support.js';
import { entryOf, type FakeServer, hello, inBrowser } from './page.test-support.js';

const { open } = inBrowser();

const show = (server: FakeServer, items = travel().items) =>
  server.send(
    hello,
    { line: 'calls', calls: [entryOf('c')] },
    { line: 'log', id: 'c', from: 0, items },
  );

describe('what a person types is not replaced by an update', () => {
  it('of a held event, while the connection is lost and found again', async () => {
    const { page, server } = await open();
    show(server);
    server.send({
      line: 'holds',
      holds: [
        {
          ...{ id: 'h1', rootId: 'c', callId: 'c', agent: ['Guide'], since: 0 },
          event: eventOf('preActing', 0, {
            toolCall: { name: 'weather', input: { city: 'Flåm' } },
          }),
        },
      ],
    });
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
