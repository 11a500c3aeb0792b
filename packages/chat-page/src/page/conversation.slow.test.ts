import { afterAll, afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError, requireApproval, suspend, tool, type Tool } from 'millrace';
import { createCallStore, inProcessCalls } from 'millrace/journal';
import { jsonSchema } from 'millrace/schema';
import { inProcessSessions } from 'millrace/sessions';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { approvalQueue } from '@millrace/server/approvals';
import { from, lastValueFrom, ReplaySubject, Subject, firstValueFrom } from 'rxjs';
import {
  closeAll,
  held,
  linesOf,
  networkTo,
  pageOf,
  tabOf,
  unsentOf,
} from './client.test-support.js';
import { textPart } from './requests.js';
import { toEvents } from './responses.js';
import { toolsIn as toolCallsIn, type ToolPart, type UiMessage, waitingIn } from './ui-message.js';
import { draftsIn } from './unsent.js';

const { fetch } = globalThis;
afterEach(closeAll);
afterAll(() => {
  globalThis.fetch = fetch;
});

const agentOf = (answers: readonly ScriptedAnswer[], tools: readonly Tool[] = []) =>
  createAgent({ name: 'helper', model: scriptedModel(...answers), tools });

/** Lets the event loop turn once. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

const toolsIn = (message: UiMessage | undefined): readonly ToolPart[] =>
  message === undefined ? [] : toolCallsIn(message);

describe('a conversation', () => {
  it('asks, and keeps what was said over a reload', async () => {
    networkTo(agentOf([[text('Hello Ann.')], [text('You are Ann.')]]));
    const page = pageOf();
    await page.ask('I am Ann.');
    const state = await page.ask('Who am I?');
    expect(linesOf(state)).toEqual([
      'user: I am Ann.',
      'assistant: Hello Ann.',
      'user: Who am I?',
      'assistant: You are Ann.',
    ]);
    expect(state.messages.at(-1)?.end).toMatchObject({ reason: 'answer' });
    expect(linesOf(await pageOf().ready())).toEqual(linesOf(state));
  });

  it('is reloaded in mid-answer, and joins it', async () => {
    const { answer, say, end } = held();
    networkTo(agentOf([answer]));
    const first = pageOf();
    await first.ready();
    first.begin('A story?');
    say('Once ');
    await first.shows('Once');
    first.close();
    const second = pageOf();
    await second.shows('Once');
    say('upon a time.');
    end();
    const state = await second.ready();
    expect(linesOf(state)).toEqual(['user: A story?', 'assistant: Once upon a time.']);
  });

  it('stops', async () => {
    const { answer, say } = held();
    networkTo(agentOf([answer]));
    const page = pageOf();
    await page.ready();
    say('Half');
    page.begin('?');
    await page.shows('Half');
    page.send({ type: 'stop' });
    const { messages } = await page.ready();
    expect(messages.at(-1)?.end).toMatchObject({ reason: 'interrupted' });
  });

  it('adds to the running answer, or asks if that has ended', async () => {
    const started$ = new ReplaySubject<void>(1);
    const done$ = new Subject<string>();
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      run: () => {
        started$.next();
        return firstValueFrom(done$);
      },
    });
    const network = networkTo(
      agentOf([[toolCall('wait'), finish()], [text('Oui.')], [text('Late.')]], [wait]),
    );
    const page = pageOf();
    await page.ready();
    page.begin('Yes?');
    await firstValueFrom(started$);
    page.send({ type: 'steer', text: 'In French.' });
    await page.until(({ steering }) => steering.length === 1);
    while (!network.requests.some((line) => line.includes('steer'))) await turn();
    await turn();
    done$.next('Done.');
    const state = await page.ready();
    await page.until(({ steering }) => steering.length === 0);
    expect(state.messages[1]?.parts).toContainEqual({ type: 'steered', text: 'In French.' });
    page.send({ type: 'steer', text: 'And?' });
    expect(linesOf(await page.shows('Late.')).at(-2)).toBe('user: And?');
  });

  it('generates an answer again, and edits a question, also after a reload', async () => {
    const answers = ['A1.', 'A2.', 'A2, again.', 'A3.', 'A4.'].map((it) => [text(it)]);
    networkTo(agentOf(answers));
    const page = pageOf();
    await page.ask('Q1?');
    const { messages } = await page.ask('Q2?');
    page.send({ type: 'regenerate', messageId: messages[3]?.id ?? '' });
    await page.shows('again');
    const again = await page.ready();
    expect(linesOf(again).slice(2)).toEqual(['user: Q2?', 'assistant: A2, again.']);
    page.send({ type: 'edit', messageId: again.messages[2]?.id ?? '', parts: [textPart('Q3?')] });
    await page.shows('A3.');
    expect(linesOf(await page.ready()).slice(2)).toEqual(['user: Q3?', 'assistant: A3.']);
    const reloaded = pageOf();
    const { messages: loaded } = await reloaded.ready();
    reloaded.send({ type: 'edit', messageId: loaded[0]?.id ?? '', parts: [textPart('Q4?')] });
    await reloaded.shows('A4.');
    expect(linesOf(await reloaded.ready())).toEqual(['user: Q4?', 'assistant: A4.']);
  });

  it('loads the history when the server does not know what is shown, and keeps the question', async () => {
    const network = networkTo(agentOf([[text('A1.')]]));
    const page = pageOf();
    await page.ask('Q1?');
    await network.server.close({ timeoutMs: 0 });
    network.server = networkTo(agentOf([[text('A2.')]])).server;
    page.begin('Q2?');
    const state = await page.until(
      ({ problem, status }) => problem !== undefined && status === 'ready',
    );
    expect(state.problem?.text).toBe('The conversation has changed. Load it again.');
    expect([linesOf(state), unsentOf(state)]).toEqual([[], ['Q2?']]);
    page.retry(state);
    await page.shows('A2.');
    expect(linesOf(await page.ready())).toEqual(['user: Q2?', 'assistant: A2.']);
  });

  it('shows an error that can be tried again', async () => {
    const broken = () => {
      throw new MillraceError('refused', 'sk-secret', { retryable: false });
    };
    networkTo(agentOf([broken, [text('Better.')]]));
    const page = pageOf();
    const { messages } = await page.ask('?');
    const { error } = messages.at(-1)?.end ?? {};
    expect(error?.text).toMatch(/\w/u);
    expect(error?.text).not.toContain('sk-secret');
    page.send({ type: 'regenerate', messageId: messages.at(-1)?.id ?? '' });
    expect(linesOf(await page.shows('Better.'))).toEqual(['user: ?', 'assistant: Better.']);
  });

  it('keeps a question that the server refuses, and sends it again', async () => {
    const { answer, say, end } = held();
    networkTo(agentOf([answer, [text('Now.')]]), { maxCalls: 1 });
    const other = pageOf('b');
    await other.ready();
    other.begin('?');
    await other.until(({ messages }) => messages.length === 2);
    const page = pageOf();
    const refused = await page.ask('Me, too?');
    expect(refused.problem?.text).toMatch(/\w/u);
    expect(unsentOf(refused)).toEqual(['Me, too?']);
    say('One.');
    end();
    await other.ready();
    page.retry(refused);
    await page.shows('Now.');
    const { problem, ...state } = await page.ready();
    expect([problem, state.unsent]).toEqual([undefined, []]);
    expect(linesOf(state)).toEqual(['user: Me, too?', 'assistant: Now.']);
  });
});

describe('a lost connection', () => {
  it('is continued after the last event, without a gap or a repetition', async () => {
    const { answer, say, end } = held();
    const network = networkTo(agentOf([answer]));
    const page = pageOf();
    await page.ready();
    page.begin('Count.');
    let shown = 'assistant: ';
    for (const number of ['one ', 'two ', 'three ']) {
      say(number);
      shown += number;
      expect(linesOf(await page.shows(number))).toEqual(['user: Count.', shown]);
      network.isDown = number === 'two ' || (number === 'three ' && 'proxy');
      network.cut();
      await page.until(({ isReconnecting }) => isReconnecting);
      await turn();
      network.isDown = false;
    }
    say('four.');
    end();
    const state = await page.ready();
    expect(linesOf(state)).toEqual(['user: Count.', 'assistant: one two three four.']);
    expect(state.isReconnecting).toBe(false);
  });

  it('ends with one message after a restart of the server, without the text of the broken attempt', async () => {
    const store = { calls: createCallStore(inProcessCalls()), sessions: inProcessSessions() };
    const { answer, say } = held();
    const next = held();
    const agent = agentOf([answer, next.answer]);
    const network = networkTo(agent, { store });
    const page = pageOf();
    await page.ready();
    page.begin('?');
    say('Broken');
    await page.shows('Broken');
    network.isDown = true;
    network.cut();
    await network.server.close({ timeoutMs: 0 });
    network.server = networkTo(agent, { store }).server;
    next.say('Whole.');
    next.end();
    await page.shows('Whole.');
    const state = await page.ready();
    expect(linesOf(state)).toEqual(['user: ?', 'assistant: Whole.']);
    expect(JSON.stringify(state)).not.toContain('Broken');
    expect(linesOf(await pageOf().ready())).toEqual(linesOf(state));
  });

  it('to a server that has forgotten the answer, ends', async () => {
    const { answer, say } = held();
    const network = networkTo(agentOf([answer]));
    const page = pageOf();
    await page.ready();
    page.begin('?');
    say('Half');
    await page.shows('Half');
    network.isDown = true;
    network.cut();
    await network.server.close({ timeoutMs: 0 });
    networkTo(agentOf([[text('Better.')]]));
    const state = await page.ready();
    expect([linesOf(state), unsentOf(state)]).toEqual([[], ['?']]);
    page.retry(state);
    await page.shows('Better.');
    expect(linesOf(await page.ready())).toEqual(['user: ?', 'assistant: Better.']);
  });

  it('before the answer, keeps the question, which is sent once, under its id', async () => {
    const network = networkTo(agentOf([[text('Yes.')]]));
    const page = pageOf();
    await page.ready();
    network.isDown = true;
    page.begin('Lost?');
    const lost = await page.until(({ isReconnecting }) => isReconnecting);
    expect([linesOf(lost), unsentOf(lost)]).toEqual([[], ['Lost?']]);
    page.retry(lost);
    const failed = await page.ready();
    expect(unsentOf(failed)).toEqual(['Lost?']);
    expect(failed.problem?.text).toBe('The server cannot be reached.');
    network.isDown = false;
    page.retry(failed);
    await page.shows('Yes.');
    const state = await page.ready();
    expect(linesOf(state)).toEqual(['user: Lost?', 'assistant: Yes.']);
    expect([state.unsent, state.problem]).toEqual([[], undefined]);
    expect(network.asked).toEqual([lost.unsent[0]?.id]);
  });

  it('looks by itself whether the question has arrived', async () => {
    const network = networkTo(agentOf([[text('Yes.')]]));
    const page = pageOf();
    await page.ready();
    network.isDown = true;
    page.begin('Lost?');
    await page.until(({ isReconnecting }) => isReconnecting);
    network.isDown = false;
    const back = await page.ready();
    expect([unsentOf(back), back.isReconnecting, back.sending]).toEqual([
      ['Lost?'],
      false,
      undefined,
    ]);
  });

  it('does not send a question again that has arrived, also after one that has failed', async () => {
    const broken = () => {
      throw new MillraceError('refused', 'secret', { retryable: false });
    };
    const network = networkTo(agentOf([broken, [text('Yes.')], [text('Twice.')]]));
    const page = pageOf();
    await page.ask('Failed?');
    network.isDown = 'answers';
    page.begin('Arrived?');
    const lost = await page.until(({ isReconnecting }) => isReconnecting);
    network.isDown = false;
    page.retry(lost);
    await page.shows('Yes.');
    const state = await page.ready();
    expect(linesOf(state)).toEqual([
      'user: Failed?',
      'assistant: ',
      'user: Arrived?',
      'assistant: Yes.',
    ]);
    expect(state.messages[1]?.end?.error).toBeDefined();
    expect([state.unsent, network.asked.length]).toEqual([[], 2]);
  });

  it('keeps a question from before the history was known, and adds it to the end', async () => {
    const network = networkTo(agentOf([[text('A1.')], [text('A2.')]]));
    await pageOf().ask('Q?');
    network.isDown = true;
    const page = pageOf();
    await page.until(({ problem }) => problem !== undefined);
    page.begin('Q?');
    const failed = await page.until(({ unsent }) => unsent.length > 0);
    network.isDown = false;
    page.send({ type: 'load' });
    const loaded = await page.until(({ messages }) => messages.length > 0);
    expect([linesOf(loaded), unsentOf(loaded)]).toEqual([['user: Q?', 'assistant: A1.'], ['Q?']]);
    page.retry(failed);
    await page.shows('A2.');
    expect(linesOf(await page.ready()).slice(2)).toEqual(['user: Q?', 'assistant: A2.']);
    expect(network.asked.length).toBe(2);
  });

  it('keeps an addition to the answer', async () => {
    const { answer, say, end } = held();
    const network = networkTo(agentOf([answer, [text('Oui.')]]));
    const page = pageOf();
    await page.ready();
    page.begin('?');
    say('Half');
    await page.shows('Half');
    network.isDown = true;
    network.cut();
    page.send({ type: 'steer', text: 'In French.' });
    const lost = await page.until(({ unsent }) => unsent.length > 0);
    expect([unsentOf(lost), lost.steering]).toEqual([['In French.'], []]);
    network.isDown = false;
    end();
    page.retry(await page.ready());
    await page.shows('Oui.');
    const state = await page.ready();
    expect(linesOf(state).slice(2)).toEqual(['user: In French.', 'assistant: Oui.']);
    expect(state.unsent).toEqual([]);
  });

  it('does not send an addition again that the answer has taken', async () => {
    const done$ = new Subject<string>();
    const wait = tool({ name: 'wait', description: 'Waits.', run: () => firstValueFrom(done$) });
    const network = networkTo(
      agentOf([[toolCall('wait'), finish()], [text('Oui.')], [text('Twice.')]], [wait]),
    );
    const page = pageOf();
    await page.ready();
    page.begin('?');
    await page.until(({ messages }) => toolsIn(messages.at(-1))[0]?.state === 'running');
    network.isDown = 'answers';
    page.send({ type: 'steer', text: 'In French.' });
    while (!network.requests.some((line) => line.includes('steer'))) await turn();
    await turn();
    done$.next('Done.');
    const lost = await page.until(({ unsent }) => unsent.length > 0);
    network.isDown = false;
    await page.shows('Oui.');
    await page.ready();
    page.retry(lost);
    const state = await page.until(({ unsent }) => unsent.length === 0);
    expect(linesOf(state)).toEqual(['user: ?', 'assistant: Oui.']);
    expect(network.asked.length).toBe(1);
  });

  it('keeps an edit beside the question that it replaces', async () => {
    const network = networkTo(agentOf([[text('A1.')], [text('A2.')], [text('A3.')]]));
    const page = pageOf();
    await page.ask('Q1?');
    const { messages } = await page.ask('Q2?');
    network.isDown = true;
    page.send({ type: 'edit', messageId: messages[0]?.id ?? '', parts: [textPart('Q3?')] });
    await page.until(({ isReconnecting }) => isReconnecting);
    network.isDown = false;
    const back = await page.ready();
    expect([linesOf(back).length, unsentOf(back)]).toEqual([4, ['Q3?']]);
    page.retry(back);
    await page.shows('A3.');
    const state = await page.ready();
    expect(linesOf(state)).toEqual(['user: Q3?', 'assistant: A3.']);
    expect([state.unsent, linesOf(await pageOf().ready())]).toEqual([[], linesOf(state)]);
  });

  it('keeps a message over a reload and another conversation, until it is discarded', async () => {
    const network = networkTo(agentOf([]));
    const tab = tabOf();
    const page = pageOf('a', tab);
    await page.ready();
    network.isDown = true;
    page.begin('Lost?');
    await page.until(({ isReconnecting }) => isReconnecting);
    page.close();
    network.isDown = false;
    expect(unsentOf(await pageOf('b', tab).ready())).toEqual([]);
    const again = pageOf('a', tab);
    const state = await again.ready();
    expect(unsentOf(state)).toEqual(['Lost?']);
    again.send({ type: 'discard', messageId: state.unsent[0]?.id ?? '' });
    expect(unsentOf(await again.until(({ unsent }) => unsent.length === 0))).toEqual([]);
    expect(unsentOf(await pageOf('a', tab).ready())).toEqual([]);
  });
});

describe('a tool that waits for its result', () => {
  it.each(['edit', 'regenerate'] as const)('is taken back: %s', async (type) => {
    const where = tool({ name: 'where', description: 'Asks.', run: () => suspend({}) });
    networkTo(agentOf([[toolCall('where'), finish()], [text('Anew.')], [text('More.')]], [where]));
    const page = pageOf();
    const { messages } = await page.ask('Where?');
    expect(messages.flatMap(waitingIn)).toHaveLength(1);
    const messageId = messages[type === 'edit' ? 0 : 1]?.id ?? '';
    page.send({ type, messageId, parts: [textPart('What?')] });
    await page.shows('Anew.');
    const state = await page.ready();
    const question = type === 'edit' ? 'user: What?' : 'user: Where?';
    expect(linesOf(state)).toEqual([question, 'assistant: Anew.']);
    expect([state.unsent, state.messages.flatMap(waitingIn)]).toEqual([[], []]);
    expect(linesOf(await page.ask('More?')).at(-1)).toBe('assistant: More.');
  });
});

describe('a stream of events', () => {
  it('may be cut anywhere', async () => {
    const source =
      ': hello\n\nid: a:0:1\ndata: {"a":\ndata: 1}\n\n: \n\nid: a:0:2\r\ndata:x\r\n\r\nid: 3\n\ndata: [DO';
    const events = [
      { id: 'a:0:1', data: '{"a":\n1}' },
      { id: 'a:0:2', data: 'x' },
    ];
    for (let at = 0; at <= source.length; at += 1) {
      for (const next of [at, Math.min(at + 3, source.length)]) {
        const pieces = [source.slice(0, at), source.slice(at, next), source.slice(next)];
        const read: unknown[] = [];
        from(pieces)
          .pipe(toEvents())
          .subscribe((event) => read.push(event));
        expect(read).toEqual(events);
      }
    }
  });
});

describe('tools', () => {
  const approvals = () => approvalQueue({ key: 'a key of thirty-two bytes or more', edits: true });
  const schema = jsonSchema({
    type: 'object',
    properties: { amount: { type: 'number', maximum: 100 } },
    required: ['amount'],
  });

  const asked = async () => {
    const queue = approvals();
    const pay = requireApproval(
      tool({
        name: 'pay',
        description: 'Pays.',
        input: schema,
        run: ({ amount }: { amount: number }) => `Paid ${amount}.`,
      }),
      queue.approve,
    );
    const agent = agentOf([[toolCall('pay', { amount: 5 }), finish()], [text('Done.')]], [pay]);
    networkTo(agent, { approvals: queue });
    const page = pageOf();
    await page.ready();
    page.begin('Pay!');
    const { messages } = await page.until(({ messages: shown }) =>
      (shown.at(-1)?.parts ?? []).some(
        (part) => part.type === 'approval' && part.data.token !== undefined,
      ),
    );
    const [token = ''] = (messages.at(-1)?.parts ?? []).flatMap((part) =>
      part.type === 'approval' ? [part.data.token ?? ''] : [],
    );
    const decide = (verdict: Parameters<typeof page.server.decide$>[1]) =>
      lastValueFrom(page.server.decide$(token, verdict), { defaultValue: undefined });
    return { page, decide };
  };

  it('run when the user approves, with edited arguments that are valid', async () => {
    const { page, decide } = await asked();
    await expect(decide({ approved: true, input: { amount: 500 } })).rejects.toMatchObject({
      status: 422,
    });
    await decide({ approved: true, input: { amount: 7 } });
    const { messages } = await page.ready();
    expect(toolsIn(messages[1])).toMatchObject([
      { state: 'done', input: { amount: 7 }, output: 'Paid 7.' },
    ]);
    await expect(decide({ approved: true })).rejects.toThrow(/\w/u);
  });

  it('do not run when the user denies', async () => {
    const { page, decide } = await asked();
    await decide({ approved: false, reason: 'Too much.' });
    const { messages } = await page.ready();
    expect(toolsIn(messages[1])).toMatchObject([{ state: 'denied' }]);
  });

  it('that are suspended get their results from the user, all together, also after a reload', async () => {
    const where = tool({
      name: 'where',
      description: 'Asks.',
      run: () => suspend({ for: 'city' }),
    });
    const agent = agentOf(
      [[toolCall('where', {}, 'v'), toolCall('where', {}, 'w'), finish()], [text('Oslo.')]],
      [where],
    );
    networkTo(agent);
    const first = pageOf();
    const before = await first.ask('Where am I?');
    expect(before.messages[1]?.end?.reason).toBe('suspended');
    const page = pageOf();
    const { messages } = await page.ready();
    const waiting = waitingIn(messages[1] ?? { id: '', role: 'user', parts: [] });
    expect(waiting).toMatchObject([{ request: { for: 'city' } }, { localId: 'w' }]);
    expect(waiting).toEqual(waitingIn(before.messages[1] ?? { id: '', role: 'user', parts: [] }));
    const [one, two] = waiting.map(({ toolCallId }) => toolCallId);
    page.send({ type: 'result', toolCallId: one ?? '', output: { city: 'Oslo' } });
    expect(
      (
        await page.until(
          ({ messages: [, it] }) =>
            it !== undefined && waitingIn(it).some(({ given }) => given !== undefined),
        )
      ).status,
    ).toBe('ready');
    page.send({ type: 'failure', toolCallId: two ?? '', errorText: 'No.' });
    const state = await page.shows('Oslo.');
    expect(linesOf(await page.ready())).toEqual(['user: Where am I?', 'assistant: Oslo.']);
    expect(toolsIn(state.messages[1])).toMatchObject([
      { state: 'done', output: { city: 'Oslo' } },
      { state: 'failed', errorText: 'No.' },
    ]);
  });

  it('ignores stored messages that are broken', () => {
    const kept = { id: 'a', role: 'user', parts: [], kind: 'question', after: 0 };
    const stored = JSON.stringify([1, null, { id: 'b' }, { ...kept, parts: 'c' }, kept]);
    const read = (text: string) =>
      draftsIn({
        getItem: () => text,
        setItem: () => undefined,
        removeItem: () => undefined,
      }).read('chat');
    expect(read(stored)).toEqual([kept]);
    expect([read('{'), read('7')]).toEqual([[], []]);
  });
});
