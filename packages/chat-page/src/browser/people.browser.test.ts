import { describe, expect, it } from '@jest/globals';
import { approval, createAgent, requireApproval, suspend, textOf, tool, type Tool } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { inProcessSessions } from 'millrace/sessions';
import { agentTool } from 'millrace/teams';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { cost } from 'millrace/traffic';
import { approvalQueue } from '@millrace/server/approvals';
import type { Page } from 'playwright-core';
import { NEVER } from 'rxjs';
import { chatPage } from '../index.js';
import { agentOf, visits } from './browser.test-support.js';

const { open, openRestarting } = visits();

const asking = (request: unknown): Tool =>
  tool({ name: 'order', description: 'Orders.', run: () => suspend(request) });

/** Calls the tool, and then says what the model has read of its result. */
const echoing = (name: string): readonly ScriptedAnswer[] => [
  [toolCall(name, { to: 'Ann' }), finish()],
  ({ messages }) => {
    const last = messages.at(-1);
    return [
      text(last?.role === 'tool' ? last.content.map((it) => textOf(it)).join('') : 'Nothing.'),
    ];
  },
];

const cardOf = (page: Page, name: string) => page.getByRole('group', { name: `Tool ${name}` });
/** Waits until the focus is there: the page moves it after it has drawn. */
const hasFocus = (page: Page, selector: string) => page.locator(`${selector}:focus`).waitFor();

/** Where people type. */
const field = '#message';

describe('a suspended tool', () => {
  it('asks its question, and takes text as it is', async () => {
    const { ask, page, sees, screens } = await open(
      agentOf(echoing('order'), [asking('Which colour do you like?')]),
    );
    await ask('Order!');
    const form = page.getByRole('form', { name: 'Question of order' });
    await form.getByText('Which colour do you like?').waitFor();
    expect(await screens('question-text')).toEqual([]);
    await form.getByRole('textbox', { name: 'Your answer' }).fill('Blue, "dark"');
    await form.getByRole('button', { name: 'Send answer' }).click();
    await sees('Blue, "dark"');
    await hasFocus(page, field);
    expect(await cardOf(page, 'order').innerText()).toContain('Done');
  });

  it('shows a form for the schema of its answer, with problems beside their fields', async () => {
    const schema = {
      type: 'object',
      required: ['name', 'count', 'size'],
      properties: {
        name: { type: 'string', maxLength: 40, description: 'As on the door.' },
        count: { type: 'integer', minimum: 1, maximum: 9 },
        size: { enum: ['Small', 'Large'] },
        extras: { type: 'array', items: { enum: ['Ice', 'Salt'] } },
        isGift: { type: 'boolean' },
      },
    };
    const { ask, page, sees, screens } = await open(
      agentOf(echoing('order'), [asking({ message: 'What shall I order?', schema })]),
    );
    await ask('Order!');
    const form = page.getByRole('form', { name: 'Question of order' });
    const submit = form.getByRole('button', { name: 'Send answer' });
    await form.getByLabel('Count').fill('12');
    await submit.click();
    await form.getByText('Up to 9.').waitFor();
    await form.getByText('Choose one.').waitFor();
    // The first field with a problem has the focus.
    expect(await form.getByLabel('Name').evaluate((it) => it === document.activeElement)).toBe(
      true,
    );
    expect(await screens('question-form')).toEqual([]);
    await form.getByLabel('Name').fill('Ann');
    await form.getByLabel('Count').fill('2');
    await form.getByText('Up to 9.').waitFor({ state: 'detached' });
    await submit.click();
    await page.waitForFunction(() => document.activeElement?.matches('[aria-invalid] input'));
    await form.getByLabel('Large').check();
    await form.getByLabel('Salt').check();
    await submit.click();
    await sees('{"name":"Ann","count":2,"size":"Large","extras":["Salt"],"isGift":false}');
  });

  it('can be left without an answer', async () => {
    const { ask, page, sees, isAnswered } = await open(
      agentOf(echoing('order'), [asking({ question: 'Which?', choices: ['A', 'B'] })]),
    );
    await ask('Order!');
    await page.getByRole('radio', { name: 'B' }).waitFor();
    await page.getByRole('button', { name: 'I cannot answer' }).click();
    await sees('You said that you cannot answer.');
    await isAnswered();
  });
});

/** Stores that outlast the servers of a test. */
const storesOf = () => {
  const driver = inProcessCalls();
  const sessions = inProcessSessions();
  return () => ({ calls: createCallStore(driver), sessions });
};

describe('after a restart of the server', () => {
  it.each([
    ['Run it again', 'this has not happened'],
    ['It happened', 'this has happened'],
    ['It failed', 'this has failed'],
  ])('an uncertain tool asks for its outcome: %s', async (label, told) => {
    const store = storesOf();
    const send = tool({ name: 'send', description: 'Sends.', run: () => NEVER });
    let isFirst = true;
    const visitor = await openRestarting(() => {
      const [first = [], ...more] = echoing('send');
      const model = scriptedModel(...(isFirst ? [first] : more));
      isFirst = false;
      const agent = createAgent({ name: 'Helper', model, tools: [send] });
      return { agent, options: { store: store() } };
    });
    const { ask, page, sees, screens, isAnswered, stop, start } = visitor;
    await ask('Send it.');
    await cardOf(page, 'send').getByText('Running').waitFor();
    stop();
    await page.getByText('Reconnecting…').waitFor();
    await start();
    const form = page.getByRole('form', { name: 'Outcome of send' });
    await form.getByText('It may have happened or not').waitFor();
    await sees('Ann');
    if (label === 'It happened') expect(await screens('uncertain')).toEqual([]);
    await page.reload();
    await form.getByRole('button', { name: label }).click();
    await sees(told);
    await isAnswered();
    expect(await form.count()).toBe(0);
    await hasFocus(page, field);
    expect(await page.locator('.answer').count()).toBe(1);
  });

  it('uncertain tools of one turn are settled together', async () => {
    const store = storesOf();
    const tools = ['send', 'pay'].map((name) =>
      tool({ name, description: 'Acts.', run: () => NEVER }),
    );
    let isFirst = true;
    const { ask, page, sees, isAnswered, stop, start } = await openRestarting(() => {
      const calls = [toolCall('send', {}, 's'), toolCall('pay', {}, 'p'), finish()];
      const model = scriptedModel(isFirst ? calls : [text('All is well.')]);
      isFirst = false;
      return {
        agent: createAgent({ name: 'Helper', model, tools }),
        options: {
          store: store(),
          protocols: [chatPage({ uncertain: 'user', models: ['Usual', 'Deep'] })],
        },
      };
    });
    await ask('Send and pay.');
    for (const name of ['send', 'pay']) await cardOf(page, name).getByText('Running').waitFor();
    stop();
    await page.getByText('Reconnecting…').waitFor();
    await start();
    const press = (name: string, label: string) =>
      page
        .getByRole('form', { name: `Outcome of ${name}` })
        .getByRole('button', { name: label })
        .click();
    await press('send', 'Run it again');
    await cardOf(page, 'send').getByText('Chosen: Run it again.').waitFor();
    await page.getByRole('combobox', { name: 'Model' }).selectOption('Deep');
    const sent = page.waitForRequest(/uncertain$/u);
    await press('pay', 'It happened');
    const body: unknown = (await sent).postDataJSON();
    expect(body).toMatchObject({ model: 'Deep' });
    expect(Object.values((body as { outcomes: object }).outcomes)).toEqual(['again', 'happened']);
    await sees('All is well.');
    await isAnswered();
    const areShown = async () => {
      await cardOf(page, 'send').getByText('Not done').waitFor();
      await cardOf(page, 'pay').getByText('You said that it has happened.').waitFor();
    };
    await areShown();
    await page.reload();
    await areShown();
  });

  it('an approval waits for the connection, and counts', async () => {
    const store = storesOf();
    const { ask, page, sees, isAnswered, stop, start } = await openRestarting(() => {
      const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more' });
      const pay = requireApproval(
        tool({ name: 'pay', description: 'Pays.', idempotent: true, run: () => 'Paid.' }),
        approvals.approve,
      );
      const model = scriptedModel(
        ({ messages }) =>
          messages.at(-1)?.role === 'tool'
            ? [text('It is paid.')]
            : [toolCall('pay', { amount: 5 }, 'p'), finish()],
        [text('It is paid.')],
      );
      const agent = createAgent({ name: 'Helper', model, tools: [pay] });
      return { agent, options: { store: store(), approvals } };
    });
    await ask('Pay!');
    const approve = page.getByRole('button', { name: 'Approve' });
    await approve.waitFor();
    stop();
    await page.getByText('Reconnecting…').waitFor();
    await approve.click();
    await start();
    await sees('It is paid.');
    await isAnswered();
    expect(await page.getByText('no longer pending').count()).toBe(0);
    expect(await page.locator('.messages').getByRole('alert').count()).toBe(0);
  });
});

describe('a question of a tool', () => {
  it('is answered with Ctrl+Enter, and left with Esc', async () => {
    const { ask, page, sees } = await open(agentOf(echoing('order'), [asking('Which colour?')]));
    await ask('Order!');
    const field = page.getByRole('textbox', { name: 'Your answer' });
    await field.fill('Blue');
    await field.press('Escape');
    await hasFocus(page, '.tool summary');
    expect(await field.inputValue()).toBe('Blue');
    await field.press('Control+Enter');
    await sees('Blue');
  });

  it('is never submitted by a key on a button', async () => {
    const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more', edits: true });
    const run = () => {
      throw new Error('It has run.');
    };
    const pay = requireApproval(
      tool({ name: 'pay', description: 'Pays.', run }),
      approvals.approve,
    );
    const answers = [[toolCall('pay', { amount: 5 }), finish()], [text('It is over.')]];
    const { ask, page, sees } = await open(agentOf(answers, [pay]), { approvals });
    const decisions: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/approvals')) decisions.push(request.postData() ?? '');
    });
    await ask('Pay!');
    const form = page.getByRole('form', { name: 'Approval of pay' });
    const press = async (name: string) => {
      await form.getByRole('button', { name, exact: true }).focus();
      await page.keyboard.press('Control+Enter');
      await page.keyboard.press('Meta+Enter');
    };
    await press('Deny …');
    if ((await form.getByRole('textbox').count()) > 0) await press('Back');
    await form.getByRole('button', { name: 'Edit' }).click();
    await press('Back');
    if ((await form.getByRole('textbox').count()) > 0) await page.keyboard.press('Escape');
    await form.getByRole('button', { name: 'Deny …' }).click();
    expect(decisions).toEqual([]);
    await form.getByRole('textbox').press('Control+Enter');
    await sees('It is over.');
    expect(decisions.map((it) => (JSON.parse(it) as { approved: boolean }).approved)).toEqual([
      false,
    ]);
  });

  it('for approval leads to the argument with a problem, until it is mended', async () => {
    const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more', edits: true });
    const input = jsonSchema({
      type: 'object',
      properties: {
        to: { type: 'string', maxLength: 40 },
        amount: { type: 'integer', maximum: 9 },
        isUrgent: { type: 'boolean' },
      },
    });
    const run = (given: unknown) => `Paid ${JSON.stringify(given)}.`;
    const pay = requireApproval(
      tool({ name: 'pay', description: 'Pays.', input, run }),
      approvals.approve,
    );
    const answers = [[toolCall('pay', { amount: 5, to: 'Ann' }), finish()], [text('It is over.')]];
    const { ask, page, sees } = await open(agentOf(answers, [pay]), { approvals });
    await ask('Pay!');
    const form = page.getByRole('form', { name: 'Approval of pay' });
    await form.getByRole('button', { name: 'Edit' }).click();
    const amount = form.getByLabel('Amount');
    await amount.fill('12');
    await form.getByLabel('To').press('Control+Enter');
    await form.getByText('Up to 9.').waitFor();
    await page.waitForFunction(() => document.activeElement?.matches('[aria-invalid]'));
    expect(await amount.evaluate((it) => it === document.activeElement)).toBe(true);
    await amount.fill('7');
    await form.getByText('Up to 9.').waitFor({ state: 'detached' });
    expect(await form.locator('[aria-invalid]').count()).toBe(0);
    await amount.press('Control+Enter');
    await sees('It is over.');
    await page.locator('.tool summary').click();
    await sees('Paid {"amount":7,"to":"Ann"}.');
  });

  it('for approval says when its arguments have changed, also to screen readers', async () => {
    const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more' });
    const run = ({ amount }: { amount: number }) => `Paid ${amount}.`;
    const input = jsonSchema({
      ...{ type: 'object', required: ['amount'] },
      properties: { amount: { type: 'number' } },
    });
    const pay = tool({ name: 'pay', description: 'Pays.', input, run });
    const agent = createAgent({
      name: 'Helper',
      model: scriptedModel([toolCall('pay', { amount: 5 }), finish()], [text('It is paid.')]),
      tools: [requireApproval(pay, approvals.approve)],
      use: [approval(() => ({ approved: true, input: { amount: 50 } }))],
    });
    const { ask, page, sees } = await open(agent, { approvals });
    await ask('Pay!');
    const form = page.getByRole('form', { name: 'Approval of pay' });
    await form.getByRole('button', { name: 'Deny …' }).click();
    await form.getByRole('textbox').press('Escape');
    await form.getByRole('button', { name: 'Approve' }).click();
    const words = 'The arguments have changed. Decide again.';
    await form.getByText(words).waitFor();
    await page.locator('[aria-live=polite]').getByText(words).waitFor();
    await sees('50');
    await form.getByRole('button', { name: 'Approve' }).click();
    await sees('It is paid.');
  });
});

describe('after a reload', () => {
  it('a denied tool is denied, and its answer has its usage, its cost and its sub-agent once', async () => {
    const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more' });
    const pay = requireApproval(
      tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' }),
      approvals.approve,
    );
    const weather = createAgent({ name: 'weather', model: scriptedModel([text('Rain.')]) });
    const usage = { type: 'usage', usage: { inputTokens: 1_000, outputTokens: 200 } } as const;
    const agent = createAgent({
      name: 'Helper',
      model: scriptedModel(
        [toolCall('pay'), toolCall('weather', { user_prompt: '?' }, 'w'), usage, finish()],
        [text('Done.'), usage],
      ),
      tools: [pay, agentTool(weather, { description: 'Knows the weather.' })],
      use: [
        cost({
          currency: 'EUR',
          date: '2026-11-01',
          prices: { scripted: { input: 10, output: 20 } },
        }),
      ],
    });
    const { ask, page, isAnswered, sees, screens } = await open(agent, { approvals });
    await ask('?');
    await page.getByRole('button', { name: 'Deny …' }).click();
    await page.keyboard.press('Tab');
    await page.getByRole('button', { name: 'Deny', exact: true }).click();
    await isAnswered();
    const shown = async () => {
      await sees(/2,400 tokens · €0\.028/u);
      const card = cardOf(page, 'weather');
      await card.getByText('Agent').waitFor();
      expect(await page.getByText('Agent', { exact: false }).count()).toBe(1);
      expect(await cardOf(page, 'pay').innerText()).toContain('Denied');
      return page.locator('.answer').innerText();
    };
    const before = await shown();
    await page.reload();
    expect(await shown()).toBe(before);
    await cardOf(page, 'weather').locator('summary').click();
    await sees('Rain.');
    expect(await page.getByText('Rain.').count()).toBe(1);
    expect(await screens('restored')).toEqual([]);
  });

  it('a stopped tool and its answer are shown as stopped', async () => {
    const wait = tool({ name: 'wait', description: 'Waits.', run: () => NEVER });
    const { ask, page, isAnswered, sees } = await open(
      agentOf([[toolCall('wait'), finish()], [text('Done.')]], [wait]),
    );
    await ask('?');
    await cardOf(page, 'wait').getByText('Running').waitFor();
    await page.keyboard.press('Escape');
    await isAnswered();
    const isStopped = async () => {
      await cardOf(page, 'wait').getByText('Stopped').waitFor();
      await sees('Stopped.');
    };
    await isStopped();
    await page.reload();
    await isStopped();
  });
});

describe('the keyboard alone', () => {
  it('leads from a question to its approval and its answer', async () => {
    const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more' });
    const pay = requireApproval(
      tool({
        name: 'pay',
        description: 'Pays.',
        input: jsonSchema({ type: 'object', properties: { amount: { type: 'number' } } }),
        run: () => 'Paid.',
      }),
      approvals.approve,
    );
    const { page, sees, isAnswered, screens } = await open(
      agentOf([[toolCall('pay', { amount: 5 }), finish()], [text('It is paid.')]], [pay]),
      { approvals },
    );
    await hasFocus(page, 'textarea');
    await page.keyboard.type('Pay!');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await screens('approval')).toEqual([]);
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
    for (let presses = 0; (await focused()) !== 'Approve' && presses < 20; presses += 1) {
      await page.keyboard.press('Shift+Tab');
    }
    await page.keyboard.press('Enter');
    await sees('It is paid.');
    await isAnswered();
    // People type on: what was approved is some keys away.
    await hasFocus(page, field);
    for (let presses = 0; (await focused()) !== 'Pay Done' && presses < 20; presses += 1) {
      await page.keyboard.press('Shift+Tab');
    }
    await page.keyboard.press('Enter');
    await sees('Paid.');
  });
});

describe('the edit of a question', () => {
  it('is cancelled by Enter on Cancel', async () => {
    const { ask, page, isAnswered } = await open(agentOf([[text('One.')]]));
    await ask('Hello');
    await isAnswered();
    await page.getByRole('button', { name: 'Edit' }).click();
    const field = page.getByRole('textbox', { name: 'Edit your message' });
    await field.fill('Bye');
    await page.getByRole('button', { name: 'Cancel' }).press('Enter');
    await field.waitFor({ state: 'detached' });
    await page.getByText('Hello').first().waitFor();
    expect(await page.getByText('Bye').count()).toBe(0);
  });
});

describe('a refusal', () => {
  it('of a message that is too large names the size', async () => {
    const { ask, page, screens } = await open(agentOf([]), { maxBytes: 20_000 });
    await ask('x'.repeat(30_000));
    await page.getByText('The request is too large: up to 20 kB are accepted.').waitFor();
    expect(await screens('too-large')).toEqual([]);
  });

  it('of a proxy is in words', async () => {
    const { ask, page } = await open(agentOf([]));
    // Only questions: the list of conversations would say the same.
    await page.route('**/api/chat?**', (route, request) =>
      request.method() === 'POST'
        ? route.fulfill({ status: 413, contentType: 'text/html', body: '<h1>nginx</h1>' })
        : route.fallback(),
    );
    await ask('Hello');
    await page.getByText('This is too large for the server.').waitFor();
    expect(await page.getByText('nginx').count()).toBe(0);
  });
});
