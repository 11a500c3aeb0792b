import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import type { Browser } from 'playwright-core';
import { chatPage } from '../index.js';
import { agentOf, launch, visits } from './browser.test-support.js';

let browser: Browser | undefined;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser?.close());

const { open, close } = visits(() => {
  if (browser === undefined) throw new Error('There is no browser.');
  return browser;
});
afterEach(async () => {
  expect(await close()).toEqual([]);
});

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
    await page.getByRole('link', { name: 'table.csv' }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'table.csv' }).waitFor();
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
