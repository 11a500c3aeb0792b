import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, suspend, tool, type Tool } from 'millrace';
import { inProcessCalls, createCallStore } from 'millrace/journal';
import { inProcessSessions } from 'millrace/sessions';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { approvalQueue } from '@millrace/server/approvals';
import type { ChatServerOptions } from '@millrace/server/chat';
import { catchError, lastValueFrom, map, of, throwError } from 'rxjs';
import { chatPage } from '../index.js';
import { closeAll, networkTo, pageOf } from './client.test-support.js';
import type { Conversation } from './conversation-state.js';
import { approvalsIn, isQuestion, plainTextOf, toolsIn } from './ui-message.js';

const { fetch } = globalThis;
afterEach(closeAll);
afterAll(() => {
  globalThis.fetch = fetch;
});

const usage = { type: 'usage', usage: { inputTokens: 30, outputTokens: 4 } } as const;
const network = (
  answers: readonly ScriptedAnswer[],
  tools: readonly Tool[] = [],
  options: ChatServerOptions = {},
) =>
  networkTo(createAgent({ name: 'helper', model: scriptedModel(...answers), tools }), {
    protocols: [chatPage()],
    ...options,
  });

/** What a person reads of each message. */
const readIn = ({ messages }: Conversation) =>
  messages.map((message) => ({
    text: plainTextOf(message),
    tools: toolsIn(message).map(({ state, errorText }) => [state, errorText]),
    tokens: message.end?.usage?.inputTokens,
    failure: message.end?.error?.text,
  }));

const isWhole = ({ status, messages }: Conversation): boolean =>
  status === 'ready' && messages.every((it) => isQuestion(it) || it.end !== undefined);

/** What this tab shows, once it knows the ends of the answers: the same as after a reload. */
const readBy = async (page: ReturnType<typeof pageOf>) => {
  const shown = readIn(await page.until(isWhole));
  const reloaded = pageOf();
  const length = shown.length;
  const again = await reloaded.until((it) => isWhole(it) && it.messages.length >= length);
  expect(readIn(again)).toEqual(shown);
  return shown;
};

const asked = async () => {
  const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more' });
  const pay = tool({ name: 'pay', description: 'Pays.', run: () => 'Paid.' });
  network(
    [
      [toolCall('pay'), usage, finish()],
      [text('Well.'), usage],
    ],
    [requireApproval(pay, approvals.approve)],
    { approvals },
  );
  const page = pageOf();
  await page.ready();
  page.begin('Pay!');
  const tokens = ({ messages }: Conversation) =>
    messages.flatMap(approvalsIn).flatMap(({ token }) => token ?? []);
  const [token = ''] = tokens(await page.until((state) => tokens(state).length > 0));
  return { page, token };
};

describe('the facts of answers', () => {
  it('are asked for again up to five times', async () => {
    const net = network([]);
    const { server, ready } = pageOf();
    await ready();
    net.isDown = 'proxy';
    const failed = await lastValueFrom(
      server.facts$('a').pipe(
        map(() => 'facts'),
        catchError(() => of('failed')),
      ),
    );
    expect(failed).toBe('failed');
    expect(net.requests.filter((it) => it.includes('/answers'))).toHaveLength(6);
  });
});

describe('after a reload', () => {
  it('a denied tool has the same words', async () => {
    const { page, token } = await asked();
    await lastValueFrom(page.server.decide$(token, { approved: false }), { defaultValue: 0 });
    expect((await readBy(page)).at(-1)).toMatchObject({
      tools: [['denied', 'This tool call was denied.']],
      tokens: 60,
    });
  });

  it('a tool that a message has cancelled before its approval was not stopped', async () => {
    const { page } = await asked();
    page.begin('Never mind.');
    await page.shows('Well.');
    const reloaded = pageOf();
    expect(readIn(await reloaded.until(isWhole))[1]).toMatchObject({
      tools: [['cancelled', 'The tool call was cancelled.']],
      tokens: 30,
    });
  });

  it('the tokens of an answer whose tool was cancelled count once, in every tab', async () => {
    const where = tool({ name: 'where', description: 'Asks.', run: () => suspend('Where?') });
    network(
      [
        [toolCall('where'), usage, finish()],
        [text('Well.'), usage],
      ],
      [where],
    );
    const page = pageOf();
    await page.ask('Where am I?');
    await page.ask('Never mind.');
    const tokens = (state: Conversation) => readIn(state).flatMap((it) => it.tokens ?? []);
    expect(tokens(await pageOf().until(isWhole))).toEqual([30, 30]);
    // Those of this tab have come by now.
    await lastValueFrom(page.server.facts$('a'));
    expect(tokens(await page.until(isWhole))).toEqual([30, 30]);
  });

  it('an answer that has failed before its first word is shown, also before later ones', async () => {
    network([
      [text('One.'), usage],
      () => throwError(() => new Error('secret')),
      [text('Three.'), usage],
    ]);
    const page = pageOf();
    await page.ask('One?');
    await page.ask('Two?');
    const failed = { failure: 'Something went wrong.', text: '' };
    expect((await readBy(page)).slice(2)).toMatchObject([{ text: 'Two?' }, failed]);
    await page.ask('Three?');
    expect((await readBy(page)).slice(2)).toMatchObject([
      { text: 'Two?' },
      failed,
      { text: 'Three?' },
      { text: 'Three.' },
    ]);
  });

  it('the facts of answers are read again if their server has failed', async () => {
    const calls = createCallStore(inProcessCalls());
    let failures = 0;
    const store = {
      sessions: inProcessSessions(),
      calls: {
        ...calls,
        driver: {
          ...calls.driver,
          read$: (...read: Parameters<typeof calls.driver.read$>) => {
            if (failures > 0) throw new Error(`${(failures -= 1)}`);
            return calls.driver.read$(...read);
          },
        },
      },
    };
    network([[text('One.'), usage]], [], { store });
    await pageOf().ask('One?');
    failures = 2;
    expect(readIn(await pageOf().until(isWhole))[1]).toMatchObject({ tokens: 30 });
    expect(failures).toBe(0);
  });
});
