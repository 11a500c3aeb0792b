import { describe, expect, it } from '@jest/globals';
import { createAgent, suspend, textOf, tool } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import type { Page } from 'playwright-core';
import { NEVER } from 'rxjs';
import { agentOf, held, visits } from './browser.test-support.js';

const { open, openRestarting } = visits();

const asking = (name: string, question: string) =>
  tool({ name, description: 'Asks.', run: () => suspend(question) });

const endless = (name: string) => tool({ name, description: 'Acts.', run: () => NEVER });

const cardOf = (page: Page, name: string) => page.getByRole('group', { name: `Tool ${name}` });
const formOf = (page: Page, name: string) =>
  page.getByRole('form', { name: new RegExp(`^(?:Question|Outcome) of ${name}$`, 'iu') });

/** Asks something else instead, and looks after reloads: while its answer runs, and when it has ended. */
const staysCancelled = async (
  { ask, page, sees, isAnswered }: Awaited<ReturnType<typeof open>>,
  name: string,
  answer: ReturnType<typeof held>,
) => {
  const isCancelled = async () => {
    await page.reload();
    await sees('As you like.');
    await cardOf(page, name).getByText('Cancelled', { exact: true }).waitFor();
    expect(await formOf(page, name).count()).toBe(0);
  };
  await ask('Never mind.');
  answer.say('As you like.');
  await sees('As you like.');
  await isCancelled();
  answer.end();
  await isAnswered();
  await isCancelled();
};

describe('a tool that a message has cancelled', () => {
  it('is not asked again, also while the answer runs', async () => {
    const last = held();
    const visitor = await open(
      agentOf(
        [[toolCall('colour'), finish()], last.answer],
        [asking('colour', 'Which colour do you like?')],
      ),
    );
    const { ask, page } = visitor;
    await ask('Ask me.');
    await formOf(page, 'colour').waitFor();
    await staysCancelled(visitor, 'colour', last);
  });

  it('is not asked for its outcome again', async () => {
    const driver = inProcessCalls();
    const sessions = inProcessSessions();
    const last = held();
    let isFirst = true;
    const visitor = await openRestarting(() => {
      const model = scriptedModel(isFirst ? [toolCall('send'), finish()] : last.answer);
      isFirst = false;
      return {
        agent: createAgent({ name: 'Helper', model, tools: [endless('send')] }),
        options: { store: { calls: createCallStore(driver), sessions } },
      };
    });
    const { ask, page, stop, start } = visitor;
    await ask('Send it.');
    await cardOf(page, 'send').getByText('Running').waitFor();
    stop();
    await page.getByText('Reconnecting…').waitFor();
    await start();
    await formOf(page, 'send').waitFor();
    await staysCancelled(visitor, 'send', last);
  });
});

describe('an answer that the server refuses', () => {
  it('is refused in words, and its question is as it was', async () => {
    const { ask, page, isAnswered } = await open(
      agentOf(
        [[toolCall('colour'), finish()], [text('Blue it is.')]],
        [asking('colour', 'Which colour do you like?')],
      ),
    );
    await ask('Ask me.');
    const answer = async () => {
      await formOf(page, 'colour').getByRole('textbox').fill('Blue');
      await formOf(page, 'colour').getByRole('button', { name: 'Send answer' }).click();
    };
    const isChat = (url: URL) => url.pathname === '/api/chat';
    await page.route(isChat, (route) => route.fulfill({ status: 400, body: '' }));
    await answer();
    await page.locator('.messages').getByRole('alert').waitFor();
    await cardOf(page, 'colour').getByText('Needs your answer').waitFor();
    await page.unroute(isChat);
    await answer();
    await page.locator('.messages').getByText('Blue it is.').waitFor();
    await isAnswered();
    expect(await page.locator('.messages').getByRole('alert').count()).toBe(0);
  });

  it('in another tab, shows the running answer once', async () => {
    const visitor = await open(
      agentOf(
        [
          [toolCall('colour'), finish()],
          [toolCall('wait', {}, 'w'), finish()],
        ],
        [asking('colour', 'Which colour do you like?'), endless('wait')],
      ),
    );
    const { ask, page } = visitor;
    await ask('Ask me.');
    await formOf(page, 'colour').waitFor();
    const other = await visitor.secondTab();
    await formOf(other.page, 'colour').waitFor();
    // This tab does not know of the message.
    await page.route('**/changes', (route) => route.abort());
    await page.reload();
    await formOf(page, 'colour').waitFor();
    await other.ask('Never mind.');
    await cardOf(other.page, 'wait').getByText('Running').waitFor();
    await page.bringToFront();
    await formOf(page, 'colour').getByRole('textbox').fill('Blue');
    await formOf(page, 'colour').getByRole('button', { name: 'Send answer' }).click();
    await page.getByText('This is no longer waiting for an answer.').waitFor();
    await cardOf(page, 'colour').getByText('Cancelled', { exact: true }).waitFor();
    await cardOf(page, 'wait').getByText('Running').waitFor();
    for (const name of ['wait', 'colour']) expect(await cardOf(page, name).count()).toBe(1);
    await page.locator('.messages').getByText('Blue').waitFor();
  });
});

describe('several tools that wait in one turn', () => {
  const rest = 'It is sent once you have answered the others, too.';
  const isSpoken = (page: Page, words: string) =>
    page.locator('[aria-live=polite]').getByText(`${words} ${rest}`).waitFor();

  it('show the answers that wait for the others, and take them back', async () => {
    const { ask, page, sees, isAnswered, screens } = await open(
      agentOf(
        [
          [toolCall('colour', {}, 'c'), toolCall('city', {}, 't'), finish()],
          ({ messages }) =>
            messages.flatMap(({ role, content }) =>
              role === 'tool' ? [text(content.map((it) => textOf(it)).join(' in '))] : [],
            ),
        ],
        [asking('colour', 'Which colour?'), asking('city', 'Which city?')],
      ),
    );
    await ask('Ask me.');
    const answer = async (name: string, value: string) => {
      await formOf(page, name).getByRole('textbox').fill(value);
      await formOf(page, name).getByRole('button', { name: 'Send answer' }).click();
    };
    await answer('colour', 'Red');
    const card = cardOf(page, 'colour');
    await card.getByText('Your answer: Red').waitFor();
    await card.getByText('Needs your answer').waitFor();
    await isSpoken(page, 'Your answer: Red');
    expect(await screens('answer-waits')).toEqual([]);
    await card.getByRole('button', { name: 'Change' }).click();
    expect(await formOf(page, 'colour').getByRole('textbox').inputValue()).toBe('Red');
    await answer('colour', 'Blue');
    await card.getByText('Your answer: Blue').waitFor();
    await answer('city', 'Oslo');
    await sees('Blue in Oslo');
    await isAnswered();
    for (const name of ['colour', 'city']) {
      await cardOf(page, name).getByText('Done', { exact: true }).waitFor();
    }
    expect(await page.getByText('Not sent').count()).toBe(0);
  });

  it('show the outcomes that wait for the others, and take them back', async () => {
    const driver = inProcessCalls();
    const sessions = inProcessSessions();
    let isFirst = true;
    const visitor = await openRestarting(() => {
      const calls = [toolCall('send', {}, 's'), toolCall('pay', {}, 'p'), finish()];
      const model = scriptedModel(isFirst ? calls : [text('All is well.')]);
      isFirst = false;
      return {
        agent: createAgent({ name: 'Helper', model, tools: [endless('send'), endless('pay')] }),
        options: { store: { calls: createCallStore(driver), sessions } },
      };
    });
    const { ask, page, sees, isAnswered, screens, stop, start } = visitor;
    await ask('Send and pay.');
    for (const name of ['send', 'pay']) await cardOf(page, name).getByText('Running').waitFor();
    stop();
    await page.getByText('Reconnecting…').waitFor();
    await start();
    const press = (name: string, label: string) =>
      formOf(page, name).getByRole('button', { name: label }).click();
    await press('send', 'Run it again');
    await cardOf(page, 'send').getByText('Chosen: Run it again.').waitFor();
    await isSpoken(page, 'Chosen: Run it again.');
    expect(await screens('outcome-waits')).toEqual([]);
    await cardOf(page, 'send').getByRole('button', { name: 'Change' }).click();
    await press('send', 'It failed');
    await cardOf(page, 'send').getByText('Chosen: It failed.').waitFor();
    const sent = page.waitForRequest(/uncertain$/u);
    await press('pay', 'It happened');
    const { outcomes } = (await sent).postDataJSON() as { outcomes: object };
    expect(Object.values(outcomes)).toEqual(['failed', 'happened']);
    await sees('All is well.');
    await isAnswered();
  });

  it('follow the outcomes of another tab', async () => {
    const driver = inProcessCalls();
    const sessions = inProcessSessions();
    let isFirst = true;
    const visitor = await openRestarting(() => {
      const model = scriptedModel(isFirst ? [toolCall('send'), finish()] : [text('All is well.')]);
      isFirst = false;
      return {
        agent: createAgent({ name: 'Helper', model, tools: [endless('send')] }),
        options: { store: { calls: createCallStore(driver), sessions } },
      };
    });
    const { ask, page, stop, start } = visitor;
    await ask('Send it.');
    await cardOf(page, 'send').getByText('Running').waitFor();
    stop();
    await page.getByText('Reconnecting…').waitFor();
    await start();
    await formOf(page, 'send').waitFor();
    const other = await visitor.secondTab();
    await formOf(other.page, 'send').getByRole('button', { name: 'It happened' }).click();
    await other.sees('All is well.');
    await page.bringToFront();
    await page.locator('.messages').getByText('All is well.').waitFor();
    expect(await formOf(page, 'send').count()).toBe(0);
  });
});
