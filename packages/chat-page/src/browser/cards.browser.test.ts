import { describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, suspend, tool, type Tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { type ApprovalQueue, approvalQueue } from '@millrace/server/approvals';
import type { Page } from 'playwright-core';
import { NEVER } from 'rxjs';
import { visits, type Visitor } from './browser.test-support.js';

const { openRestarting } = visits();

const input = jsonSchema({
  type: 'object',
  properties: {
    to_account: { type: 'string', title: 'Account', description: 'Who gets it.' },
    amount: { type: 'number' },
    is_urgent: { type: 'boolean' },
    lines: { type: 'array', items: { type: 'object', properties: { unitPrice: {} } } },
    speed: { oneOf: [{ const: 'fast', title: 'At once' }] },
  },
});
const output = jsonSchema({
  type: 'object',
  properties: { order_id: { title: 'Receipt' }, is_paid: {}, notes: {} },
});
const asked = {
  ...{ to_account: 'Ann', amount: 5, is_urgent: true, speed: 'fast' },
  lines: [{ unitPrice: 2 }, { unitPrice: 3 }],
};
/** With the titles of the schema: each card has them. */
const titled = ['Account', 'Ann', 'Amount', 'Is urgent', 'Yes', 'Unit price', '3', 'At once'];

/** A tool whose name people should not read. */
const acting = (run: () => unknown, more: { readonly output?: typeof output } = {}): Tool =>
  tool({
    name: 'send_money',
    description: 'Sends money.',
    input,
    ...more,
    run: run as () => never,
  });

const asking = (request?: unknown): Tool => acting(() => suspend(request));
const question = { message: 'Which colour?', choices: ['Red', 'Blue'] };

const cardOf = (page: Page, name = 'Send money') =>
  page.getByRole('group', { name: `Tool ${name}`, exact: true });

/** Opens the details of the card, and waits until it has these words. Nothing there is JSON or a name of code. */
const reads = async (page: Page, words: readonly string[]) => {
  await page.bringToFront();
  const fold = cardOf(page).locator('details').first();
  await fold.waitFor();
  // A card that changes may open itself in the moment of the click, which then closes it.
  while ((await fold.getAttribute('open')) === null) await fold.locator('summary').first().click();
  for (const word of words) await cardOf(page).getByText(word).first().waitFor();
  const shown = await page.locator('.messages').innerText();
  expect(shown).not.toMatch(/[{}"_]|unitPrice|\bnull\b|undefined|Running|Not finished/u);
};

interface Kind {
  readonly kind: string;
  readonly tool: (approvals: ApprovalQueue) => Tool;
  /** The server starts again while the tool runs. */
  readonly restarts?: boolean;
  /** How long an approval waits for its decision, in milliseconds. */
  readonly expiresInMs?: number;
  /** What the card says while it waits for someone, and what they do. */
  readonly waits?: readonly string[];
  readonly act?: (visitor: Visitor) => Promise<void>;
  /** What it says in the end. */
  readonly ended: readonly string[];
}

const press = (page: Page, name: string) => cardOf(page).getByRole('button', { name }).click();
const uncertain = (label: string, status: string, ended: string): Kind => ({
  kind: `uncertain, and the user says: ${label}`,
  tool: () => acting(() => NEVER),
  restarts: true,
  waits: ['Outcome unknown', 'Run it again', ...titled],
  act: ({ page }) => press(page, label),
  ended: [status, ended, ...titled],
});
const approving = ({ approve }: ApprovalQueue): Tool =>
  requireApproval(
    acting(() => 'Sent.'),
    approve,
  );

const kinds: readonly Kind[] = [
  {
    kind: 'done',
    tool: () => acting(() => ({ order_id: 12, is_paid: true, notes: [] }), { output }),
    ended: ['Done', 'Receipt', '12', 'Is paid', 'Notes', 'None', ...titled],
  },
  {
    kind: 'failed',
    tool: () =>
      acting(() => {
        throw new Error('secret');
      }),
    ended: ['Failed', 'The tool failed.', ...titled],
  },
  {
    kind: 'a question',
    tool: () => asking(question),
    waits: ['Needs your answer', 'Which colour?', ...titled],
    act: async ({ page }) => {
      await cardOf(page).getByRole('radio', { name: 'Red' }).check();
      await press(page, 'Send answer');
    },
    ended: ['Done', 'Which colour?', 'Your answer', 'Red', ...titled],
  },
  {
    kind: 'a question that is not answered',
    tool: () => asking(question),
    waits: ['Needs your answer'],
    act: ({ page }) => press(page, 'I cannot answer'),
    ended: ['No answer', 'Which colour?', 'You said that you cannot answer.', ...titled],
  },
  {
    kind: 'cancelled',
    tool: () => asking(question),
    waits: ['Needs your answer'],
    act: ({ ask }) => ask('Never mind.'),
    ended: ['Cancelled', 'Which colour?', ...titled],
  },
  {
    kind: 'a tool of a client',
    tool: () => asking(),
    waits: ['Needs your answer', 'Send money needs an answer from you.', ...titled],
    act: async ({ page }) => {
      await cardOf(page).getByRole('textbox').fill('In Oslo');
      await press(page, 'Send answer');
    },
    ended: ['Done', 'Your answer', 'In Oslo', ...titled],
  },
  {
    kind: 'approved',
    tool: approving,
    waits: ['Needs approval', 'May Send money run with these arguments?', ...titled],
    act: async ({ page }) => {
      await press(page, 'Edit');
      await cardOf(page).getByRole('textbox', { name: 'Amount' }).fill('7');
      await press(page, 'Approve edited');
    },
    ended: ['Done', 'Asked for', '5', 'Approved, after an edit', '7', ...titled],
  },
  {
    kind: 'denied',
    tool: approving,
    waits: ['Needs approval'],
    act: async ({ page }) => {
      await press(page, 'Deny …');
      await cardOf(page).getByRole('textbox').fill('Too much');
      await press(page, 'Deny');
    },
    ended: ['Denied', 'Reason: Too much', ...titled],
  },
  {
    kind: 'denied, because no one has decided in time',
    tool: approving,
    expiresInMs: 300,
    ended: ['Denied', 'No one decided in time, so it did not run.', ...titled],
  },
  uncertain('It happened', 'Done', 'You said that it has happened.'),
  uncertain('It failed', 'Failed', 'You said that it has failed.'),
  uncertain(
    'Run it again',
    'Not done',
    'You said that it has not happened. The model was asked to run it again.',
  ),
];

/** Opens a page whose agent calls tools and then says this. Their server can start again. */
const openWith = (
  tools: (approvals: ApprovalQueue) => readonly Tool[],
  times: Pick<Kind, 'expiresInMs'> = {},
) => {
  const driver = inProcessCalls();
  const sessions = inProcessSessions();
  let isFirst = true;
  return openRestarting(() => {
    const approvals = approvalQueue({
      ...{ key: 'a key of thirty-two bytes or more', edits: true },
      ...times,
    });
    const own = tools(approvals);
    const calls = own.map(({ name }) => toolCall(name, asked, name));
    const more = [[text('All is well.')], [text('As you like.')]];
    const model = scriptedModel(...(isFirst ? [[...calls, finish()], ...more] : more));
    isFirst = false;
    return {
      agent: createAgent({ name: 'Helper', model, tools: own }),
      options: { approvals, store: { calls: createCallStore(driver), sessions } },
    };
  });
};

const restarted = async ({ page, stop, start }: Awaited<ReturnType<typeof openWith>>) => {
  stop();
  await page.getByText('Reconnecting…').waitFor();
  await start();
};

describe('a person who is no programmer reads words on each card, live, after a reload and in other tabs', () => {
  it.each(kinds)(
    '$kind',
    async ({ kind, tool: created, restarts, waits, act, ended, ...times }) => {
      const visitor = await openWith((approvals) => [created(approvals)], times);
      const { ask, page, isAnswered, secondTab, screens } = visitor;
      const name = kind.replaceAll(/[^a-z]+/giu, '-');
      await ask('Do it.');
      if (restarts === true) {
        await cardOf(page).getByText('Running').waitFor();
        await restarted(visitor);
      }
      const watcher = await secondTab();
      const everyone = async (words: readonly string[]) => {
        for (const tab of [page, watcher.page]) await reads(tab, words);
        await watcher.page.reload();
        await reads(watcher.page, words);
      };
      if (waits !== undefined) {
        await everyone(waits);
        expect(await screens(`card-${name}-waits`)).toEqual([]);
      }
      await page.bringToFront();
      await act?.(visitor);
      await isAnswered();
      await everyone(ended);
      await page.bringToFront();
      expect(await screens(`card-${name}`)).toEqual([]);
    },
    120_000,
  );
});

describe('a tool of unknown outcome asks before the answer has ended', () => {
  const other = { name: 'other', description: 'Asks.' };

  it('beside a question', async () => {
    const visitor = await openWith(() => [
      acting(() => NEVER),
      tool({ ...other, run: () => suspend('Which city?') }),
    ]);
    const { ask, page, sees, isAnswered } = visitor;
    await ask('Do it.');
    await cardOf(page).getByText('Running').waitFor();
    await restarted(visitor);
    await reads(page, ['Outcome unknown', 'It happened']);
    await press(page, 'It happened');
    await cardOf(page, 'Other').getByRole('textbox').fill('Oslo');
    await cardOf(page, 'Other').getByRole('button', { name: 'Send answer' }).click();
    await sees('You said that it has happened.');
    await sees('Oslo');
    await isAnswered();
  });

  it('beside an approval, and what is said waits for that', async () => {
    const visitor = await openWith(({ approve }) => [
      acting(() => NEVER),
      requireApproval(tool({ ...other, run: () => 'Ran.' }), approve),
    ]);
    const { ask, page, sees, isAnswered } = visitor;
    await ask('Do it.');
    await cardOf(page).getByText('Running').waitFor();
    await cardOf(page, 'Other').getByRole('button', { name: 'Approve' }).waitFor();
    await restarted(visitor);
    await reads(page, ['Outcome unknown', 'It happened']);
    await press(page, 'It happened');
    await cardOf(page).getByText('Chosen: It happened.').waitFor();
    await cardOf(page, 'Other').getByRole('button', { name: 'Approve' }).click();
    await sees('You said that it has happened.');
    await sees('All is well.');
    await isAnswered();
  });
});
