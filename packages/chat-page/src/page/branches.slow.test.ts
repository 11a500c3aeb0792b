import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, suspend, tool } from 'millrace';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { approvalQueue } from '@millrace/server/approvals';
import { BehaviorSubject, filter, firstValueFrom, of } from 'rxjs';
import {
  closeAll,
  held,
  linesOf,
  networkTo,
  pageOf,
  tabOf,
  unsentOf,
} from './client.test-support.js';
import type { Conversation } from './conversation-state.js';
import { textPart } from './requests.js';
import { approvalsIn, toolsIn, waitingIn } from './ui-message.js';

const { fetch } = globalThis;
afterEach(closeAll);
afterAll(() => {
  globalThis.fetch = fetch;
});

const modelOf = (...answers: readonly ScriptedAnswer[]) => scriptedModel(...answers);
const agentOf = (...answers: readonly ScriptedAnswer[]) =>
  createAgent({ name: 'helper', model: modelOf(...answers) });

/** Lets the event loop turn once. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** `2/3` for each message with several versions. */
const versionsOf = ({ messages, branches }: Conversation): readonly string[] =>
  messages.flatMap(({ id }) => {
    const versions = branches[id];
    return versions === undefined ? [] : [`${versions.indexOf(id) + 1}/${versions.length}`];
  });

/** Shows another version of a message: the one before it, or after it. */
const turnTo = (page: ReturnType<typeof pageOf>, state: Conversation, at: number, by: 1 | -1) => {
  const { id = '' } = state.messages[at] ?? {};
  const versions = state.branches[id] ?? [];
  page.send({ type: 'switch', messageId: versions[versions.indexOf(id) + by] ?? '' });
};

describe('the versions of a question', () => {
  it('are two after an answer was generated again, immediately and after a reload', async () => {
    networkTo(agentOf([text('One.')], [text('Two.')]));
    const page = pageOf();
    const { messages } = await page.ask('Number?');
    page.send({ type: 'regenerate', messageId: messages[1]?.id ?? '' });
    await page.shows('Two.');
    const state = await page.ready();
    expect([versionsOf(state), linesOf(state)]).toEqual([
      ['2/2'],
      ['user: Number?', 'assistant: Two.'],
    ]);
    const reloaded = await pageOf().ready();
    expect([versionsOf(reloaded), linesOf(reloaded)]).toEqual([['2/2'], linesOf(state)]);
  });

  it('keep their later turns, and the conversation continues after the one that is shown', async () => {
    const model = modelOf([text('A1.')], [text('A2.')], [text('A3.')], [text('A4.')]);
    networkTo(createAgent({ name: 'helper', model }));
    const page = pageOf();
    await page.ask('Q1?');
    const { messages } = await page.ask('Q2?');
    page.send({ type: 'edit', messageId: messages[0]?.id ?? '', parts: [textPart('Q3?')] });
    await page.shows('A3.');
    const edited = await page.ready();
    expect([versionsOf(edited), linesOf(edited)]).toEqual([
      ['2/2'],
      ['user: Q3?', 'assistant: A3.'],
    ]);
    turnTo(page, edited, 0, -1);
    const first = await page.shows('A2.');
    const known = ['user: Q1?', 'assistant: A1.', 'user: Q2?', 'assistant: A2.'];
    expect([versionsOf(first), linesOf(first)]).toEqual([['1/2'], known]);
    const state = await page.ask('Q4?');
    expect(linesOf(state)).toEqual([...known, 'user: Q4?', 'assistant: A4.']);
    const asked = model.requests.at(-1)?.messages.filter(({ role }) => role === 'user');
    expect(JSON.stringify(asked)).toMatch(/Q1\?.*Q2\?.*Q4\?/u);
    expect(JSON.stringify(asked)).not.toContain('Q3?');
    expect(linesOf(await pageOf().ready())).toEqual(linesOf(state));
  });

  it('are those of a failed answer, too', async () => {
    const broken = () => {
      throw new Error('broken');
    };
    networkTo(agentOf(broken, [text('Better.')]));
    const page = pageOf();
    const { messages } = await page.ask('?');
    page.send({ type: 'regenerate', messageId: messages.at(-1)?.id ?? '' });
    await page.shows('Better.');
    expect(versionsOf(await page.ready())).toEqual(['2/2']);
  });
});

describe('another tab', () => {
  it('shows a new question, its answer while it arrives, and all after it', async () => {
    const one = held();
    const two = held();
    networkTo(agentOf(one.answer, two.answer));
    const page = pageOf();
    const other = pageOf();
    await page.ready();
    await other.ready();
    page.begin('A story?');
    one.say('Once ');
    await other.shows('Once');
    one.say('upon a time.');
    one.end();
    await page.ready();
    expect(linesOf(await other.ready())).toEqual([
      'user: A story?',
      'assistant: Once upon a time.',
    ]);
    // The other way round.
    other.begin('More?');
    two.say('No.');
    await page.shows('No.');
    two.end();
    await other.ready();
    expect(linesOf(await page.ready()).slice(2)).toEqual(['user: More?', 'assistant: No.']);
  });

  it('shows another branch when it is chosen', async () => {
    networkTo(agentOf([text('A1.')], [text('A2.')]));
    const page = pageOf();
    const { messages } = await page.ask('Q?');
    page.send({ type: 'regenerate', messageId: messages[1]?.id ?? '' });
    await page.shows('A2.');
    const state = await page.ready();
    const other = pageOf();
    await other.shows('A2.');
    turnTo(page, state, 0, -1);
    expect(versionsOf(await other.shows('A1.'))).toEqual(['1/2']);
  });

  it('keeps the question that is being edited in view, until the edit ends', async () => {
    networkTo(agentOf(...[1, 2, 3, 4, 5, 6].map((at) => [text(`A${at}.`)])));
    const page = pageOf();
    await page.ask('Q1?');
    const { messages } = await page.ask('Q2?');
    const other = pageOf();
    await other.shows('A2.');
    const edited = messages[2]?.id ?? '';
    page.send({ type: 'editing', messageId: edited });
    const { messages: known } = await other.ready();
    other.send({ type: 'edit', messageId: known[0]?.id ?? '', parts: [textPart('Q3?')] });
    await other.shows('A3.');
    const state = await page.until(({ elsewhere }) => elsewhere === 'changed');
    expect([linesOf(state).length, state.messages[2]?.id]).toEqual([4, edited]);
    page.send({ type: 'edit', messageId: edited, parts: [textPart('Q4?')] });
    await page.shows('A4.');
    const sent = await page.ready();
    expect(linesOf(sent)).toEqual(['user: Q1?', 'assistant: A1.', 'user: Q4?', 'assistant: A4.']);
    expect(versionsOf(sent)).toEqual(['1/2', '2/2']);
    // It stays on its branch now, and the other one goes on at the head.
    await other.ask('Q5?');
    await page.until(({ changes }) => changes > sent.changes + 1);
    for (let turns = 0; turns < 20; turns += 1) await turn();
    expect(linesOf(await page.ready())).toEqual(linesOf(sent));
    // Until it is chosen there.
    turnTo(page, sent, 0, 1);
    await page.shows('A5.');
    await other.ask('Q6?');
    await page.shows('A6.');
  });

  it('does not lose the view of its own answer to a question of another tab', async () => {
    const one = held();
    const two = held();
    networkTo(agentOf([text('Hello.')], one.answer, two.answer));
    const page = pageOf();
    await page.ask('Hi.');
    const other = pageOf();
    await other.shows('Hello.');
    // A tab that has lost its connection to the changes asks after the same message.
    page.begin('Q1?');
    other.begin('Q2?');
    one.say('A1.');
    two.say('A2.');
    await page.until(({ messages }) => messages.length === 4);
    await other.until(({ messages }) => messages.length === 4);
    two.end();
    const own = await other.ready();
    one.end();
    const states = [await page.ready(), own];
    expect(states.map((state) => linesOf(state)[2])).toEqual(['user: Q1?', 'user: Q2?']);
    for (const state of states) expect(linesOf(state)).toHaveLength(4);
    expect(states.flatMap(versionsOf)).toContain('2/2');
  });

  it('that follows nothing continues in what it shows, and deletes nothing of the others', async () => {
    networkTo(agentOf([text('A1.')], [text('A2.')], [text('A3.')], [text('A4.')]));
    const stale = pageOf('a', tabOf(), of(false));
    await stale.ask('Q1?');
    const { messages } = await stale.ask('Q2?');
    const other = pageOf();
    const { messages: loaded } = await other.ready();
    other.send({ type: 'edit', messageId: loaded[0]?.id ?? '', parts: [textPart('Q3?')] });
    await other.shows('A3.');
    await other.ready();
    stale.send({ type: 'regenerate', messageId: messages[3]?.id ?? '' });
    await stale.shows('A4.');
    const state = await stale.ready();
    const shown = ['user: Q1?', 'assistant: A1.', 'user: Q2?', 'assistant: A4.'];
    expect([linesOf(state), versionsOf(state)]).toEqual([shown, ['1/2', '2/2']]);
    turnTo(stale, state, 0, 1);
    expect(linesOf(await stale.shows('A3.'))).toEqual(['user: Q3?', 'assistant: A3.']);
  });

  it('makes no connection while it is hidden, and catches up', async () => {
    const network = networkTo(agentOf([text('A1.')], [text('A2.')]));
    const page = pageOf();
    await page.ask('Q1?');
    const isVisible$ = new BehaviorSubject(false);
    network.requests.length = 0;
    const other = pageOf('a', tabOf(), isVisible$);
    await other.shows('A1.');
    await page.ask('Q2?');
    // The first page follows again after its answer.
    expect(network.requests.filter((line) => line.includes('changes'))).toHaveLength(1);
    expect(linesOf(await other.ready())).toHaveLength(2);
    isVisible$.next(true);
    expect(linesOf(await other.shows('A2.'))).toHaveLength(4);
  });

  it('holds one stream: that of its answer, or that of the changes', async () => {
    const answer = held();
    const network = networkTo(agentOf([text('A1.')], answer.answer));
    const page = pageOf();
    await page.ask('Q1?');
    const most: number[] = [];
    network.open$.subscribe(({ length }) => most.push(length));
    const holds = (line: string) =>
      firstValueFrom(network.open$.pipe(filter((open) => open.join() === line)));
    await holds('GET /api/chat/a/changes');
    page.begin('Q2?');
    answer.say('So far.');
    await page.shows('So far.');
    await holds('POST /api/chat?approvals=token');
    answer.end();
    await page.ready();
    await holds('GET /api/chat/a/changes');
    expect(Math.max(...most)).toBe(1);
  });

  it('follows again after a lost connection', async () => {
    const network = networkTo(agentOf([text('A1.')], [text('A2.')]));
    const page = pageOf();
    await page.ask('Q1?');
    const other = pageOf();
    await other.shows('A1.');
    network.isDown = true;
    network.cut();
    await page.ready();
    network.isDown = false;
    await page.ask('Q2?');
    expect(linesOf(await other.shows('A2.'))).toHaveLength(4);
  });

  it('shows that the conversation was deleted, and what the user writes stays', async () => {
    networkTo(agentOf([text('A1.')], [text('A2.')]));
    const page = pageOf();
    const { messages } = await page.ask('Q1?');
    const other = pageOf();
    await other.shows('A1.');
    const edited = messages[0]?.id ?? '';
    page.send({ type: 'editing', messageId: edited });
    other.server.delete$('a').subscribe();
    const gone = await other.until(({ elsewhere }) => elsewhere === 'deleted');
    expect([gone.messages, gone.branches, gone.title]).toEqual([[], {}, undefined]);
    const kept = await page.until(({ elsewhere }) => elsewhere === 'deleted');
    expect(kept.messages.map(({ id }) => id)).toContain(edited);
    page.send({ type: 'edit', messageId: edited, parts: [textPart('Kept?')] });
    await page.shows('A2.');
    const state = await page.ready();
    expect([linesOf(state), unsentOf(state)]).toEqual([['user: Kept?', 'assistant: A2.'], []]);
  });
});

describe('a message', () => {
  it('cancels the tool call that waits for its result', async () => {
    const where = tool({ name: 'where', description: 'Asks.', run: () => suspend({}) });
    const model = modelOf([toolCall('where'), finish()], [text('Hi.')]);
    networkTo(createAgent({ name: 'helper', model, tools: [where] }));
    const page = pageOf();
    const asked = await page.ask('Where?');
    expect(asked.messages.flatMap(waitingIn)).toHaveLength(1);
    const state = await page.ask('Hello?');
    expect(linesOf(state)).toEqual([
      'user: Where?',
      'assistant: ',
      'user: Hello?',
      'assistant: Hi.',
    ]);
    expect(state.messages.flatMap(waitingIn)).toEqual([]);
    expect(state.messages.flatMap(toolsIn)).toMatchObject([{ state: 'cancelled' }]);
    const reloaded = await pageOf().ready();
    expect([linesOf(reloaded), reloaded.messages.flatMap(waitingIn)]).toEqual([linesOf(state), []]);
    expect(reloaded.messages.flatMap(toolsIn)).toMatchObject([{ state: 'cancelled' }]);
  });

  it('cancels the tool call that waits for approval', async () => {
    const approvals = approvalQueue({ key: 'a key of thirty-two bytes or more' });
    let paid = 0;
    const run = () => `Paid ${(paid += 1)}.`;
    const pay = requireApproval(
      tool({ name: 'pay', description: 'Pays.', run }),
      approvals.approve,
    );
    const model = modelOf([toolCall('pay'), finish()], [text('Hi.')], [text('Hi.')]);
    networkTo(createAgent({ name: 'helper', model, tools: [pay] }), { approvals });
    const page = pageOf();
    await page.ready();
    page.begin('Pay!');
    await page.until(({ messages }) => messages.flatMap(approvalsIn).length > 0);
    page.begin('Hello?');
    await page.shows('Hi.');
    const state = await page.ready();
    expect(linesOf(state).slice(-2)).toEqual(['user: Hello?', 'assistant: Hi.']);
    expect(state.messages.flatMap(toolsIn)).toMatchObject([{ state: 'cancelled' }]);
    expect(paid).toBe(0);
  });
});
