import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError, tool, toolOutput } from 'millrace';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import type { ChatProtocol } from '@millrace/server/chat';
import { of, throwError } from 'rxjs';
import { isRecord } from 'millrace/values';
import { chatPage, type Feedback } from '../index.js';
import { agentOf, visits } from './browser.test-support.js';

const { open, close } = visits();

const logo =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'%3E%3Crect width='9' height='9' fill='purple'/%3E%3C/svg%3E".replaceAll(
    ' ',
    '%20',
  );

describe('the page of an application', () => {
  it('has its questions, logo, footer and colors', async () => {
    const page$ = chatPage({
      title: 'Miller & Sons',
      starters: ['What is a fjord?', 'Is "this" <safe>?'],
      footer: 'Answers may be wrong.',
      logo,
      theme: { accent: 'light-dark(#6d28d9, #c4b5fd)', 'on-accent': 'light-dark(#fff, #1e1b4b)' },
    });
    const { page, screens, sees, isAnswered, answers } = await open(agentOf([[text('Deep.')]]), {
      protocols: [page$],
    });
    await page.getByRole('button', { name: 'Is "this" <safe>?' }).waitFor();
    await page.getByText('Answers may be wrong.').waitFor();
    expect(
      await page.locator('.brand img').evaluate((it: HTMLImageElement) => it.naturalWidth > 0),
    ).toBe(true);
    const accent = () =>
      page
        .getByRole('button', { name: 'Send' })
        .evaluate((it) => getComputedStyle(it).backgroundColor);
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await accent()).toBe('rgb(109, 40, 217)');
    expect(await screens('starters')).toEqual([]);
    await page.getByRole('button', { name: 'What is a fjord?' }).click();
    await sees('Deep.');
    await isAnswered();
    expect(await answers()).toEqual(['Deep.']);
    expect(await page.getByRole('button', { name: 'What is a fjord?' }).count()).toBe(0);
  });
});

describe('a file', () => {
  it('of any kind reaches the model, and keeps its name after a reload', async () => {
    const model = scriptedModel([text('Two lines.')]);
    const { ask, page, isAnswered, screens } = await open(createAgent({ name: 'Helper', model }));
    const picker = page.locator('input[type=file]');
    await picker.setInputFiles({ name: 'empty.csv', mimeType: 'text/csv', buffer: Buffer.of() });
    await page.getByText('empty.csv is empty.').waitFor();
    const large = Buffer.alloc(2_600_000, 1);
    await picker.setInputFiles({ name: 'large.bin', mimeType: '', buffer: large });
    await page.getByText('large.bin is too large: a file may have 2.5 MB.').waitFor();
    // What is no picture would be refused by a model that is told it is one.
    const broken = { name: 'broken.png', mimeType: 'image/png', buffer: Buffer.from('no picture') };
    await picker.setInputFiles(broken);
    await page.getByRole('button', { name: 'Remove broken.png' }).waitFor();
    const buffer = Buffer.from('a,b\n1,2\n');
    await picker.setInputFiles({ name: 'table.csv', mimeType: 'text/csv', buffer });
    await page.getByRole('button', { name: 'Remove table.csv' }).waitFor();
    expect(await screens('file')).toEqual([]);
    await ask('How many lines?');
    await isAnswered();
    expect(model.requests[0]?.messages.at(-1)?.content).toContainEqual({
      type: 'file',
      name: 'table.csv',
      source: { kind: 'base64', mediaType: 'text/csv', data: buffer.toString('base64') },
    });
    expect(model.requests[0]?.messages.at(-1)?.content).toContainEqual({
      type: 'file',
      name: 'broken.png',
      source: {
        ...{ kind: 'base64', mediaType: 'application/octet-stream' },
        data: broken.buffer.toString('base64'),
      },
    });
    await page.getByRole('link', { name: 'table.csv' }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'table.csv' }).waitFor();
  });

  it('that the model refuses is removed from its message, also after more questions and a reload', async () => {
    const isFile = ({ type }: { readonly type: string }) => type !== 'text';
    const refused = new MillraceError('invalidRequest', 'secret');
    const answer: ScriptedAnswer = ({ messages }) =>
      messages.some(({ content }) => content.some(isFile))
        ? throwError(() => refused)
        : [text('It is a fjord.')];
    const { ask, page, isAnswered, sees, screens } = await open(
      agentOf(Array.from({ length: 4 }, () => answer)),
    );
    const buffer = Buffer.from('\0\0\0\u0018ftypheic');
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'fjord.heic', mimeType: 'image/heic', buffer });
    await page.getByRole('button', { name: 'Remove fjord.heic' }).waitFor();
    await ask('What is it?');
    await sees('A file may be the reason');
    await ask('And how deep?');
    await page.locator('.answer').nth(1).getByText('A file may be the reason').waitFor();
    expect(await page.getByText('A file may be the reason').count()).toBe(1);
    await isAnswered();
    await page.reload();
    await sees('A file may be the reason');
    // The browser cannot draw it.
    await page.getByRole('link', { name: 'image/heic' }).waitFor();
    expect(await screens('file-refused')).toEqual([]);
    await page.getByRole('button', { name: 'Edit the message with the file' }).click();
    const field = page.getByRole('textbox', { name: 'Edit your message' });
    expect(await field.inputValue()).toBe('What is it?');
    expect(await field.evaluate((it) => it === document.activeElement)).toBe(true);
    expect(await screens('file-edit')).toEqual([]);
    // The history has no names of pictures.
    await page.getByRole('button', { name: 'Remove the file' }).click();
    await page.getByRole('button', { name: 'Send again' }).click();
    await sees('It is a fjord.');
    await isAnswered();
    expect(await page.getByText('A file may be the reason').count()).toBe(0);
    await ask('Are you sure?');
    await page.locator('.answer').nth(1).getByText('It is a fjord.').waitFor();
  });
});

describe('a conversation', () => {
  it('is exported as Markdown', async () => {
    const { ask, page, isAnswered } = await open(agentOf([[text('It is **deep**.')]]));
    await ask('What is a fjord?');
    await isAnswered();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export as Markdown' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('What is a fjord.md');
    expect(await readFile(await download.path(), 'utf8')).toBe(
      '# What is a fjord?\n\n## You\n\nWhat is a fjord?\n\n## Answer\n\nIt is **deep**.\n',
    );
  });
});

describe('the result of a tool', () => {
  const dot =
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const views = {
    prices: {
      ...{ view: 'table', caption: 'Prices', columns: ['Fish', 'Price'] },
      rows: [['<b>Cod</b>', 12.5], Array.from({ length: 40 }, () => 'a long row')],
    },
    drawn: { view: 'picture', url: dot, alt: 'A dot' },
    tracked: { view: 'picture', url: 'https://evil.test/a.png' },
    opened: { view: 'link', url: 'https://x.org', title: 'A page' },
    hostile: { view: 'link', url: 'javascript:window.hit=1', title: 'Click' },
    star: { view: 'stars', count: 4 },
    other: { view: 'unknown', count: 4 },
    inherited: { view: 'toString', count: 5 },
    fragile: { view: 'fragile', count: 6 },
  };

  it('is a table, a picture, a link or what the module of the site draws, without any HTML', async () => {
    const tools = Object.entries(views).map(([name, details]) =>
      tool({ name, description: name, run: () => toolOutput({ content: 'Seen.', details }) }),
    );
    const calls = tools.map(({ name }) => toolCall(name, {}, name));
    const module = `export default {
      stars: (element, { count }) => {
        element.textContent = count + ' of 5 stars';
        try { element.innerHTML = '<i>no</i>'; } catch { element.append('!'); }
        return 'no function';
      },
      fragile: (element) => {
        element.append('Half');
        return () => { document.documentElement.dataset.isRemoved = 'yes'; };
      },
    };`;
    const renderers: ChatProtocol = () => [
      {
        ...{ method: 'GET', path: '/renderers.js' },
        answer$: () => of(new Response(module, { headers: { 'content-type': 'text/javascript' } })),
      },
    ];
    const { ask, page, isAnswered, screens } = await open(
      agentOf([[...calls, finish()], [text('Done.')]], tools),
      { protocols: [chatPage({ renderers: '/renderers.js' }), renderers] },
    );
    await ask('?');
    await isAnswered();
    const isShown = async () => {
      await page.getByRole('cell', { name: '<b>Cod</b>' }).waitFor();
      await page.getByRole('img', { name: 'A dot' }).waitFor();
      expect(await page.getByRole('link', { name: 'A page' }).getAttribute('href')).toBe(
        'https://x.org/',
      );
      await page.getByRole('link', { name: 'https://evil.test/a.png' }).waitFor();
      expect(await page.getByRole('link', { name: 'Click' }).count()).toBe(0);
      await page.getByText('4 of 5 stars!').waitFor();
      await page.getByText('unknown', { exact: true }).waitFor();
      await page.getByText('toString', { exact: true }).waitFor();
      await page.getByText('Half').waitFor();
    };
    // The policy refuses HTML.
    await isShown();
    expect(await screens('views')).toEqual([]);
    await page.reload();
    await isShown();
    await page.getByRole('button', { name: 'New chat' }).click();
    await page.locator('html[data-is-removed=yes]').waitFor();
    const errors = await close();
    expect(errors.filter((it) => !it.includes('Trusted'))).toEqual([]);
    expect(errors).not.toEqual([]);
  });
});

describe('feedback', () => {
  it('reaches the program, and shows a failure of it', async () => {
    const given: Feedback[] = [];
    const onFeedback = (feedback: Feedback) => {
      given.push(feedback);
      if (!feedback.isGood) throw new Error('secret');
    };
    const { ask, page, isAnswered, screens } = await open(agentOf([[text('Deep.')]]), {
      protocols: [chatPage({ onFeedback })],
    });
    await ask('?');
    await isAnswered();
    const good = page.getByRole('button', { name: 'Good answer' });
    await good.click();
    await page.locator('[aria-live=polite]').getByText('Thank you for your feedback.').waitFor();
    expect(await good.getAttribute('aria-pressed')).toBe('true');
    expect(await screens('feedback')).toEqual([]);
    await page.getByRole('button', { name: 'Bad answer' }).click();
    await page.getByText('Your feedback was not saved. Try again.').waitFor();
    expect(await good.getAttribute('aria-pressed')).toBe('true');
    expect(given.map(({ isGood }) => isGood)).toEqual([true, false]);
    const chatId = new URL(page.url()).hash.slice(1);
    expect(given[0]).toEqual({ chatId, callId: expect.any(String), isGood: true });
    const refused = await page.evaluate(async () => {
      const init = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ callId: 'other', isGood: true }),
      };
      return (await fetch(`/api/chat/${location.hash.slice(1)}/feedback`, init)).status;
    });
    expect([refused, given.length]).toEqual([409, 2]);
  });
});

describe('several agents and models', () => {
  it('can be chosen', async () => {
    const deep = scriptedModel([text('From the deep model.')]);
    const { ask, page, sees, isAnswered, screens } = await open(
      agentOf([[text('From the usual.')]]),
      {
        metadata: ({ body }) => ({
          model: isRecord(body) && body['model'] === 'Deep' ? 'Deep' : 'Usual',
        }),
        callOptions: ({ model }) => (model === 'Deep' ? { model: deep } : {}),
        protocols: [
          chatPage({ models: ['Usual', 'Deep'], agents: { Sales: '/', Support: '/support/' } }),
        ],
      },
    );
    const links = page.getByRole('list', { name: 'Agents' }).getByRole('link');
    expect(await links.evaluateAll((all) => all.map((it) => it.getAttribute('href')))).toEqual([
      ...['/', '/support/'],
    ]);
    expect(await links.first().getAttribute('aria-current')).toBe('page');
    expect(await screens('pickers')).toEqual([]);
    await ask('?');
    await sees('From the usual.');
    await isAnswered();
    await page.getByRole('combobox', { name: 'Model' }).selectOption('Deep');
    await ask('?');
    await sees('From the deep model.');
    await isAnswered();
    await page.reload();
    expect(await page.getByRole('combobox', { name: 'Model' }).inputValue()).toBe('Deep');
  });
});
