import { describe, expect, it } from '@jest/globals';
import { suspend, tool } from 'millrace';
import { finish, text, toolCall } from 'millrace/testing';
import type { Page } from 'playwright-core';
import { agentOf, held, violations, visits, type Visitor } from './browser.test-support.js';

const { open, visit } = visits();

const answersOf = (...texts: readonly string[]) => agentOf(texts.map((it) => [text(it)]));
const listOf = (page: Page) => page.getByRole('navigation', { name: 'Conversations' });
const button = (page: Page, name: string) => page.getByRole('button', { name });
const focused = (page: Page) =>
  page.evaluate(
    () => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent,
  );

/** Keeps what a screen reader would say. */
const listen = (page: Page) =>
  page.evaluate(() => {
    const spoken: string[] = [];
    Object.assign(window, { spoken });
    for (const region of document.querySelectorAll('[aria-live], [role=status], [role=alert]')) {
      new MutationObserver(() => spoken.push(region.textContent ?? '')).observe(region, {
        ...{ subtree: true, childList: true, characterData: true },
      });
    }
  });

const spokenIn = (page: Page) =>
  page.evaluate(() => (window as unknown as { spoken: string[] }).spoken.filter((it) => it !== ''));

const regenerate = async ({ page, sees, isAnswered }: Visitor, answer: string) => {
  await button(page, 'Regenerate').last().click();
  await sees(answer);
  await isAnswered();
};

const edit = async (
  { page, sees, isAnswered }: Visitor,
  at: number,
  text: string,
  answer: string,
) => {
  await button(page, 'Edit').nth(at).click();
  await page.getByRole('textbox', { name: 'Edit your message' }).fill(text);
  await page.keyboard.press('Enter');
  await sees(answer);
  await isAnswered();
};

describe('the list of conversations', () => {
  it('has several, which can be renamed and deleted', async () => {
    const { ask, page, sees, isAnswered, answers, screenshot } = await open(
      answersOf('First answer.', 'Second answer.'),
    );
    await ask('First question?');
    await isAnswered();
    await page.getByRole('button', { name: 'New chat' }).click();
    await ask('Second question?');
    await sees('Second answer.');
    await isAnswered();
    const list = listOf(page);
    await list.getByRole('link', { name: 'First question?' }).waitFor();
    expect(await list.getByRole('link').count()).toBe(2);
    await list.getByRole('link', { name: 'First question?' }).click();
    await sees('First answer.');
    expect(await answers()).toEqual(['First answer.']);
    await page.goBack();
    await sees('Second answer.');
    await list.getByRole('link', { name: 'First question?' }).hover();
    await list.getByRole('button', { name: 'Rename First question?' }).click();
    await list.getByRole('textbox', { name: 'Title' }).fill('My chat');
    await page.keyboard.press('Enter');
    await list.getByRole('link', { name: 'My chat' }).waitFor();
    await list.locator('[aria-label="Rename My chat"]:focus').waitFor();
    await screenshot('conversations');
    page.once('dialog', (dialog) => void dialog.dismiss());
    await button(page, 'Delete My chat').click();
    expect(await list.getByRole('link').count()).toBe(2);
    page.once('dialog', (dialog) => {
      expect(dialog.message()).toBe('Delete “My chat”? This cannot be undone.');
      void dialog.accept();
    });
    await list.getByRole('link', { name: 'My chat' }).hover();
    await list.getByRole('button', { name: 'Delete My chat' }).click();
    await list.getByRole('link', { name: 'My chat' }).waitFor({ state: 'detached' });
    await page.reload();
    await sees('Second answer.');
    expect(await list.getByRole('link').count()).toBe(1);
  });

  it('is the same in every browser of the user, and is searched', async () => {
    const { ask, page, url, isAnswered } = await open(answersOf('On the coast.', 'In the Alps.'));
    await ask('Where are fjords?');
    await isAnswered();
    await button(page, 'New chat').click();
    await ask('Where are glaciers?');
    await isAnswered();
    const other = await visit(url);
    const list = listOf(other.page);
    await list.getByRole('link', { name: 'Where are glaciers?' }).waitFor();
    expect(await list.locator('li a > span').allInnerTexts()).toEqual([
      'Where are glaciers?',
      'Where are fjords?',
    ]);
    const field = list.getByRole('searchbox', { name: 'Search conversations' });
    await field.fill('coast');
    await list.getByRole('link', { name: 'glaciers' }).waitFor({ state: 'detached' });
    await other.screenshot('search');
    await field.fill('volcano');
    await list.getByText('No conversations found.').waitFor();
    expect(await violations(other.page)).toEqual([]);
    await field.fill('');
    await list.getByRole('link', { name: 'Where are fjords?' }).click();
    await other.sees('On the coast.');
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
  });

  it('shows a new conversation and a new title in other tabs', async () => {
    const visitor = await open(answersOf('One.'));
    const other = await visitor.secondTab();
    await visitor.ask('First?');
    await listOf(other.page).getByRole('link', { name: 'First?' }).waitFor();
    await visitor.isAnswered();
    await listOf(other.page).getByRole('link', { name: 'First?' }).click();
    await other.sees('One.');
    await listOf(visitor.page).getByRole('link', { name: 'First?' }).hover();
    await button(visitor.page, 'Rename First?').click();
    await visitor.page.getByRole('textbox', { name: 'Title' }).fill('My chat');
    await visitor.page.keyboard.press('Enter');
    await other.page.getByRole('heading', { name: 'My chat' }).waitFor();
    await listOf(other.page).getByRole('link', { name: 'My chat' }).waitFor();
  });

  it('is reloaded in mid-answer', async () => {
    const { answer, say, end } = held();
    const { ask, page, sees, answers, isAnswered } = await open(agentOf([answer]));
    await ask('A story?');
    say('Once ');
    await sees('Once');
    await page.reload();
    await sees('Once');
    say('upon a time.');
    end();
    await sees('Once upon a time.');
    await isAnswered();
    expect(await answers()).toEqual(['Once upon a time.']);
  });

  it('belongs to the user of a cookie', async () => {
    const user = ({ headers }: Request) => /user=(\w+)/u.exec(headers.get('cookie') ?? '')?.[1];
    const { page, url, ask, sees } = await open(agentOf([[text('Hello Ann.')]]), { user });
    expect(await page.locator('body').innerText()).toContain('You are not logged in.');
    await page.context().addCookies([{ name: 'user', value: 'ann', url }]);
    await page.goto(url);
    await ask('Hello!');
    await sees('Hello Ann.');
  });
});

describe('the versions of a question', () => {
  const screens = [
    { name: 'wide-light', colorScheme: 'light', viewport: { width: 1440, height: 900 } },
    { name: 'wide-dark', colorScheme: 'dark', viewport: { width: 1440, height: 900 } },
    { name: 'narrow-light', colorScheme: 'light', viewport: { width: 390, height: 844 } },
    { name: 'narrow-dark', colorScheme: 'dark', viewport: { width: 390, height: 844 } },
  ] as const;

  it.each(screens)('are shown on every screen: $name', async ({ name, ...screen }) => {
    const visitor = await open(answersOf('One.', 'Two.', 'Three.'), {}, screen);
    const { ask, page, isAnswered, screenshot } = visitor;
    await ask('A number, please?');
    await isAnswered();
    expect(await page.locator('.versions').count()).toBe(0);
    await regenerate(visitor, 'Two.');
    expect(await page.locator('.versions').innerText()).toContain('2/2');
    await edit(visitor, 0, 'Another number?', 'Three.');
    expect(await page.locator('.versions').innerText()).toContain('3/3');
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(
      screen.viewport.width,
    );
    expect(await violations(page)).toEqual([]);
    await screenshot(`versions-${name}`);
  });

  it('are chosen with the keyboard, which keeps the focus, and are announced once', async () => {
    const visitor = await open(answersOf('One.', 'Two.', 'Three.'));
    const { ask, page, sees, answers, isAnswered } = visitor;
    await ask('Number?');
    await isAnswered();
    await regenerate(visitor, 'Two.');
    await listen(page);
    const previous = button(page, 'Previous version');
    const next = button(page, 'Next version');
    await previous.focus();
    await page.keyboard.press('Enter');
    await sees('One.');
    expect([await answers(), await focused(page)]).toEqual([['One.'], 'Previous version']);
    expect(await spokenIn(page)).toEqual(['Version 1 of 2']);
    // The first one: the button stays, and gives the reason.
    expect(await previous.getAttribute('aria-disabled')).toBe('true');
    expect(await previous.getAttribute('title')).toBe('This is the first version.');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('Next version');
    await page.keyboard.press('Space');
    await sees('Two.');
    expect([await answers(), await next.getAttribute('aria-disabled')]).toEqual([['Two.'], 'true']);
    // What is shown is what the conversation continues after, also after a reload.
    await previous.click();
    await sees('One.');
    await page.reload();
    await sees('One.');
    await ask('And?');
    await sees('Three.');
    await isAnswered();
    expect(await answers()).toEqual(['One.', 'Three.']);
  });

  it('keep what was said after each of them', async () => {
    const visitor = await open(answersOf('One.', 'Two.', 'Three.'));
    const { ask, page, sees, answers, isAnswered } = visitor;
    await ask('First?');
    await isAnswered();
    await ask('Second?');
    await sees('Two.');
    await isAnswered();
    await edit(visitor, 0, 'Other?', 'Three.');
    expect(await answers()).toEqual(['Three.']);
    await button(page, 'Previous version').click();
    await sees('Two.');
    expect(await answers()).toEqual(['One.', 'Two.']);
    expect(await page.locator('.question .bubble').allInnerTexts()).toEqual(['First?', 'Second?']);
  });
});

describe('another tab', () => {
  it('follows: the question, the answer while it arrives, other versions', async () => {
    const { answer, say, end } = held();
    const visitor = await open(agentOf([[text('One.')], [text('Two.')], answer]));
    const { ask, page, sees, isAnswered, answers } = visitor;
    await ask('Number?');
    await isAnswered();
    const other = await visitor.secondTab();
    await other.sees('One.');
    await regenerate(visitor, 'Two.');
    await other.sees('Two.');
    await other.page.locator('.versions').getByText('2/2').waitFor();
    await button(other.page, 'Previous version').click();
    await sees('One.');
    await ask('A story?');
    say('Once ');
    await other.sees('Once');
    await other.page.locator('.answer[aria-busy=true]').waitFor();
    await other.screenshot('second-tab');
    say('upon a time.');
    end();
    await other.sees('Once upon a time.');
    await other.isAnswered();
    expect(await other.answers()).toEqual(['One.', 'Once upon a time.']);
    await sees('Once upon a time.');
    await isAnswered();
    expect(await answers()).toEqual(['One.', 'Once upon a time.']);
    expect(await page.locator('.versions').allInnerTexts()).toEqual(
      await other.page.locator('.versions').allInnerTexts(),
    );
  });

  it('takes nothing from what is being written', async () => {
    const visitor = await open(answersOf('One.', 'Two.', 'Three.', 'Four.'));
    const { ask, page, sees, isAnswered, answers, screenshot } = visitor;
    await ask('First?');
    await isAnswered();
    await ask('Second?');
    await sees('Two.');
    await isAnswered();
    const other = await visitor.secondTab();
    await other.sees('Two.');
    await page.locator('#message').fill('Half a mess');
    await button(page, 'Edit').nth(1).click();
    const field = page.getByRole('textbox', { name: 'Edit your message' });
    await field.fill('Half an ed');
    await edit(other, 0, 'Other?', 'Three.');
    await page.getByText('This conversation has changed in another tab.').waitFor();
    expect(await violations(page)).toEqual([]);
    await screenshot('second-tab-edit');
    expect([await field.inputValue(), await answers()]).toEqual(['Half an ed', ['One.', 'Two.']]);
    await field.fill('Half an edit.');
    await field.press('Enter');
    await sees('Four.');
    await isAnswered();
    expect(await answers()).toEqual(['One.', 'Four.']);
    expect(await page.locator('#message').inputValue()).toBe('Half a mess');
    // The other tab has chosen its branch: it stays there.
    expect(await other.answers()).toEqual(['Three.']);
  });

  it('shows that the conversation was deleted, and keeps what is being written', async () => {
    const visitor = await open(answersOf('One.', 'Two.'));
    const { ask, page, isAnswered } = visitor;
    await ask('First?');
    await isAnswered();
    const other = await visitor.secondTab();
    await other.sees('One.');
    await other.page.locator('#message').fill('Half a mess');
    page.once('dialog', (dialog) => void dialog.accept());
    await listOf(page).getByRole('link', { name: 'First?' }).hover();
    await button(page, 'Delete First?').click();
    await other.page.getByText('This conversation was deleted in another tab.').waitFor();
    await listOf(other.page).getByRole('link').waitFor({ state: 'detached' });
    expect(await other.page.locator('.question, .answer').count()).toBe(0);
    expect(await other.page.locator('#message').inputValue()).toBe('Half a mess');
    expect(await violations(other.page)).toEqual([]);
    await other.screenshot('second-tab-deleted');
    await other.page.locator('#message').press('Enter');
    await other.sees('Two.');
    await other.isAnswered();
    expect(await other.answers()).toEqual(['Two.']);
  });
});

describe('a tool that waits', () => {
  it('is cancelled by a message, in every tab', async () => {
    const where = tool({ name: 'where', description: 'Asks.', run: () => suspend({}) });
    const visitor = await open(agentOf([[toolCall('where'), finish()], [text('Hi.')]], [where]));
    const { ask, page, sees, isAnswered } = visitor;
    await ask('Where am I?');
    const form = page.getByRole('form', { name: 'Question of where' });
    await form.getByText('If you send a message instead, this tool call is cancelled.').waitFor();
    const other = await visitor.secondTab();
    await other.page
      .getByRole('form', { name: 'Question of where' })
      .getByRole('textbox')
      .fill('"Osl');
    await ask('Never mind. Hello!');
    await sees('Hi.');
    await isAnswered();
    await other.sees('Hi.');
    for (const tab of [page, other.page]) {
      const card = tab.getByRole('group', { name: 'Tool where' });
      await card.getByText('Cancelled', { exact: true }).waitFor();
      expect(await tab.getByRole('form', { name: 'Question of where' }).count()).toBe(0);
      expect(await violations(tab)).toEqual([]);
    }
    await other.page.getByText('"Osl').waitFor();
    await other.screenshot('cancelled');
    await page.reload();
    await page
      .getByRole('group', { name: 'Tool where' })
      .getByText('Cancelled', { exact: true })
      .waitFor();
  });
});
