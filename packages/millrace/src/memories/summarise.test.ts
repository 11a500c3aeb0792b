import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { EMPTY, of, Subject, tap, throwError } from 'rxjs';
import { interruptOn } from '../layers/interrupt-on.js';
import { createAgent } from '../agent.js';
import type { CallOptions } from '../call/call-options.js';
import { createDemand } from '../flow/demand.js';
import type { AgentEvent } from '../events.js';
import { on } from '../seams/interceptor.js';

import { inProcessMemory, type MemoryFactory } from './in-process-memory.js';
import { type Message, textOf } from '../values/message.js';
import type { Model } from '../models/model.js';
import { insertBefore } from '../phases/phase-list.js';
import { reasoning } from '../phases/reasoning.js';
import { unpaired } from '../values/pairing.js';
import {
  marbles,
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
} from '../testing/index.js';
import { tool } from '../tools/tool.js';
import { add, answer, exchange, held, user } from './conversations.test-support.js';
import { summarise, type SummariseOptions } from './summarise.js';
import { sessions } from '../layers/sessions/index.js';
import { journal } from '../journal/index.js';
import type { AgentOptions } from '../call/agent-options.js';

const pad = 'and so on '.repeat(40);
const look = tool({ name: 'look', description: 'Looks.', run: () => `blue ${pad}` });
const usage = { inputTokens: 100, outputTokens: 10 };
const notes: ScriptedAnswer = [text('Notes.'), { type: 'usage', usage }];

/** A session with four turns, and an agent whose calls are summarised. */
const set = (
  answers: readonly ScriptedAnswer[],
  options: Partial<{ [Key in keyof SummariseOptions]: SummariseOptions[Key] | undefined }> = {},
  more: Partial<AgentOptions> = {},
) => {
  const memory: MemoryFactory = inProcessMemory();
  for (const it of ['a', 'b', 'c', 'd']) {
    add(
      memory('s'),
      user(`${it}/input/0`, `${it}? ${pad}`),
      ...exchange(`${it}/1`),
      answer(`${it}/2`),
    );
  }
  const model = scriptedModel(...answers);
  const writer = scriptedModel(...Array.from({ length: 60 }, () => notes));
  const given = { contextWindow: 500, model: writer, ...options } as SummariseOptions;
  const use = more?.use ?? [];
  const own = insertBefore(reasoning, summarise(given));
  const agent = createAgent({ model, tools: [look], ...more, use: [own, ...use] });
  return { model, writer, memory: memory('s'), agent, chat: sessions(agent, { memory }).open('s') };
};

const shown = (messages: readonly Message[] = []): readonly string[] =>
  messages.map((message) =>
    message.role === 'user' ? textOf(message).slice(0, 40) : message.role,
  );

const recordOf = (chat: ReturnType<typeof set>['chat'], options: CallOptions = {}) =>
  record(chat.stream$('Go on.', { callId: 'z', ...options }));

const warningsIn = (events: readonly AgentEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));

describe('summarise', () => {
  it('I8: replaces older turns in the request by a summary, and memory has nothing of it', async () => {
    const { model, writer, memory, chat } = set([[text('Done.')]]);
    const before = held(memory);
    const events = await recordOf(chat);
    expect(shown(model.requests[0]?.messages)).toEqual([
      '[Summary of 8 earlier messages]\nNotes.',
      expect.stringMatching(/^c\?/),
      'assistant',
      'tool',
      'assistant',
      expect.stringMatching(/^d\?/),
      'assistant',
      'tool',
      'assistant',
      'Go on.',
    ]);
    expect(model.requests[0]?.messages[0]?.id).toBe('z/recap/1');
    expect(held(memory).slice(0, before.length)).toEqual(before);
    expect(held(memory).slice(before.length).map(textOf)).toEqual(['Go on.', 'Done.']);
    expect(textOf(writer.requests[0]?.messages[0] ?? user(''))).toMatch(/^user:\n {2}a\?/);
    expect(warningsIn(events)).toEqual([
      expect.stringMatching(
        /^The context window is filling up: 8 earlier messages \(about \d+ tokens\) are summ/,
      ),
    ]);
    expect(events.filter(({ type }) => type.endsWith('Chunk'))).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { iterations: 1, usage } });
  });

  it('G2: makes no request if there is room, and if there is nothing old', async () => {
    for (const [options, answers] of [
      [{ contextWindow: 4_000 }, [[text('Done.')]]],
      [{ ratio: 1, contextWindow: 800 }, [[text('Done.')]]],
      [{ keepTurns: 4 }, [[text('Done.')]]],
      [{ count: () => 0 }, [[text('Done.')]]],
    ] as const) {
      const { writer, chat } = set(answers, options);
      const events = await recordOf(chat);
      expect(writer.requests).toEqual([]);
      expect(warningsIn(events)).toEqual([]);
    }
  });

  it('I15: in a long call, older tools go, what was asked stays, and the next summary is made of the former', async () => {
    const uses = Array.from({ length: 8 }, (): ScriptedAnswer => [toolCall('look')]);
    const { model, writer, memory, chat } = set([...uses, [text('Done.')]], { keepTurns: 1 });
    await recordOf(chat);
    const last = shown(model.requests.at(-1)?.messages);
    expect(last).toEqual([
      expect.stringMatching(/^\[Summary of \d+ earlier messages\]\nNotes\.$/),
      'Go on.',
      ...last.slice(2).filter((it) => it === 'assistant' || it === 'tool'),
    ]);
    expect(last.length).toBeLessThan(3 + 2 * 8);
    expect(writer.requests.length).toBeGreaterThan(1);
    const asked = writer.requests.map(({ messages: [only = user('')] }) => textOf(only));
    expect(asked).toContainEqual(
      expect.stringMatching(
        /^summary so far:\n {2}Notes\.\nuser:\n {2}Go on\.\nassistant \(agent\) uses look:\n/,
      ),
    );
    const [, count = 0] = /of (\d+)/.exec(last[0] ?? '') ?? [];
    const all = held(memory).length - 1;
    expect(Number(count) + last.length - 1).toBe(all);
  });

  it('I8, I15: for any summary, memory is the same, the task is shown, and pairs are whole', async () => {
    const run = async (exchanges: number, options: Partial<SummariseOptions>) => {
      const uses = Array.from({ length: exchanges }, (): ScriptedAnswer => [
        text('Hm.'),
        toolCall('look'),
        toolCall('look'),
      ]);
      const { model, writer, memory, chat } = set([...uses, [text('Done.')]], options);
      const reply = await chat.call('Go on.', { callId: 'z' });
      expect(reply.toolCalls).toHaveLength(2 * exchanges);
      for (const { messages } of model.requests) {
        expect(unpaired(messages)).toBeUndefined();
        expect(messages.filter(({ id }) => id === 'z/input/0')).toHaveLength(1);
        expect(messages.filter(({ id }) => id.startsWith('z/recap/')).length).toBeLessThan(2);
      }
      return { asked: writer.requests.length, stored: held(memory) };
    };
    const sizes = fc.integer({ min: 150, max: 3_000 });
    const keeps = fc.integer({ min: 1, max: 4 });
    await fc.assert(
      fc.asyncProperty(fc.nat(7), sizes, keeps, async (exchanges, contextWindow, keepTurns) => {
        const plain = await run(exchanges, { contextWindow: 1_000_000 });
        const summarised = await run(exchanges, { contextWindow, keepTurns });
        expect(plain.asked).toBe(0);
        expect(summarised.stored).toEqual(plain.stored);
      }),
      { numRuns: 25 },
    );
    expect((await run(7, { contextWindow: 500 })).asked).toBeGreaterThan(2);
  });

  it('G2: without a model of its own, the one of the call is asked', async () => {
    const { model, chat } = set([notes, [text('Done.')]], {
      model: undefined,
      maxTokens: 77,
      prompt: 'Sum up.',
    });
    await recordOf(chat);
    expect(model.requests).toHaveLength(2);
    expect(model.requests[0]).toMatchObject({ system: 'Sum up.', maxTokens: 77 });
    expect(model.requests[0]?.tools).toBeUndefined();
  });

  it('S6: a resumed call does not ask again, not even for one that failed', async () => {
    for (const written of [notes, throwError(() => new Error('no'))]) {
      const known = new Map<string, unknown>();
      const durable = journal((id, work) =>
        known.has(id)
          ? of(known.get(id))
          : work().pipe(tap((made) => known.set(id, JSON.parse(JSON.stringify(made))))),
      );
      const writer = scriptedModel(written);
      const answers: ScriptedAnswer[] = [[toolCall('look')], [text('Done.')]];
      const options = { model: writer, keepTurns: 3 };
      const first = set(answers, options, { use: [durable] });
      const before = await first.chat.call('Go on.', { callId: 'z' });
      const asked = writer.requests.length;
      expect(asked).toBeGreaterThan(0);
      expect([...known.keys()]).toContain('z/1/recap');
      const second = set([], options, { use: [durable] });
      const after = await durable.resume(second.chat, 'z');
      expect(writer.requests).toHaveLength(asked);
      expect(textOf(after)).toBe('Done.');
      expect(after.usage).toEqual(before.usage);
      expect(held(second.memory)).toEqual(held(first.memory));
    }
  });

  it('G2: if it fails, a warning says why, the call continues as it was, and what it cost counts', async () => {
    const writer = scriptedModel([
      { type: 'usage', usage },
      { type: 'finish', finish: 'filtered' },
    ]);
    const { model, chat } = set([[text('Done.')]], { model: writer });
    const events = await recordOf(chat);
    expect(model.requests[0]?.messages).toHaveLength(17);
    expect(warningsIn(events)[1]).toBe(
      'The summary failed; the call continues with all messages: The model refused to write the summary.',
    );
    expect(events.at(-1)).toMatchObject({ reply: { reason: 'answer', usage } });
  });

  it('G2: what is too long for one request is summarised in several, until one fails', async () => {
    const whole = set([[text('Done.')]], { keepTurns: 1 });
    const reply = await whole.chat.call('Go on.');
    expect(whole.writer.requests).toHaveLength(2);
    expect(reply.usage).toMatchObject({ inputTokens: 200, outputTokens: 20 });
    const writer = scriptedModel([text('')], notes);
    const broken = set([[text('Done.')]], { keepTurns: 1, model: writer });
    const events = await recordOf(broken.chat);
    expect(writer.requests).toHaveLength(1);
    expect(warningsIn(events)[1]).toContain('The model returned no summary.');
    expect(broken.model.requests[0]?.messages).toHaveLength(17);
  });

  it('C4: a retry is heard of, and what had been written before it is not', async () => {
    const writer: Model = {
      name: 'writer',
      stream$: (_request, { demand, report, retryBudget, stepId }) => {
        const lent = `${stepId} ${String(demand.isOpen)} ${String(retryBudget?.take())}`;
        report({ type: 'warning', message: lent });
        return of(text('Half'), { type: 'restart', why: 'again' } as const, text('Notes.'), {
          type: 'finish',
          finish: 'stop',
        } as const);
      },
    };
    const demand = createDemand(1);
    demand.backlog(1);
    const { model, chat } = set([[text('Done.')]], { model: writer });
    const events = await recordOf(chat, { limits: { retryBudget: 1 }, demand });
    expect(warningsIn(events)).toContain('z/1/recap false true');
    expect(events.some(({ type }) => type === 'messageDiscarded')).toBe(false);
    expect(shown(model.requests[0]?.messages)[0]).toBe('[Summary of 8 earlier messages]\nNotes.');
  });

  it('S1: an interrupt ends the request immediately, and the call is interrupted', () => {
    marbles(({ expectObservable, expectSubscriptions, hot, model: modelOf, scheduler }) => {
      const writer = modelOf('--t------(f|)');
      const { model, memory, chat } = set([[text('Done.')]], { model: writer });
      const stop$ = hot('----x', { x: 1 });
      const call$ = chat.call$('Go on.', { use: [interruptOn(stop$)], scheduler, callId: 'z' });
      const reason$ = new Subject<string>();
      expectObservable(reason$).toBe('----a', { a: 'interrupted' });
      call$.subscribe(({ reason }) => reason$.next(reason));
      expectSubscriptions(writer.subscriptions[0] ?? []).toBe('^---!');
      scheduler.schedule(() => {
        expect(model.requests).toEqual([]);
        expect(held(memory).slice(16).map(textOf)).toEqual(['Go on.', 'Interrupted.']);
      }, 5);
    });
  });

  it('I5: unsubscribing aborts the request in the same tick', () => {
    marbles(({ expectSubscriptions, expectObservable, model: modelOf, scheduler }) => {
      const writer = modelOf('--t------(f|)');
      const { memory, chat } = set([], { model: writer });
      expectObservable(chat.call$('Go on.', { scheduler }), '^--!').toBe('----');
      expectSubscriptions(writer.subscriptions[0] ?? []).toBe('^--!');
      scheduler.schedule(() => expect(held(memory)).toHaveLength(16), 5);
    });
  });

  it('C5: a model that is silent for too long is given up', () => {
    marbles(({ expectSubscriptions, expectObservable, model: modelOf, scheduler }) => {
      const writer = modelOf('---------(tf|)');
      const { model, chat } = set([[text('Done.')]], { model: writer });
      const call$ = chat.stream$('Go on.', {
        scheduler,
        limits: { timeouts: { firstChunkMs: 3 } },
      });
      const done$ = new Subject<string>();
      expectObservable(done$).toBe('---a', { a: 'postCall' });
      call$.subscribe(({ type }) => type === 'postCall' && done$.next(type));
      expectSubscriptions(writer.subscriptions[0] ?? []).toBe('^--!');
      scheduler.schedule(() => expect(model.requests[0]?.messages).toHaveLength(17), 5);
    });
  });

  it('H2: interceptors of requests and of what is written are for the call, and not for its summary', async () => {
    const seen: string[] = [];
    const interceptors = [
      on(
        'preReasoning',
        tap(({ messages }) => seen.push(`asked ${messages.length}`)),
      ),
      on(
        'preSummary',
        tap(() => seen.push('closing')),
      ),
    ];
    const { chat } = set([[text('Done.')]], {}, { use: interceptors });
    await recordOf(chat);
    expect(seen).toEqual(['asked 10']);
  });

  it('I1: it is a phase like any other: an ended run passes', async () => {
    const phase = summarise({ contextWindow: 1 });
    const { chat } = set(
      [[text('Done.')]],
      {},
      { use: [{ name: 'own', turn: () => [reasoning, phase] }] },
    );
    expect(textOf(await chat.call('Go on.'))).toBe('Done.');
  });

  it('S1: a journal that gives nothing leaves the run as it is', async () => {
    const durable = journal((id, work) => (id.endsWith('recap') ? EMPTY : work()));
    const { model, chat } = set([[text('Done.')]], {}, { use: [durable] });
    await chat.call('Go on.');
    expect(model.requests[0]?.messages).toHaveLength(17);
  });

  it.each([
    [{}, /needs 'contextWindow'/],
    [{ contextWindow: 10, ratio: 70 }, /'ratio' must be a number above 0 and up to 1/],
    [{ contextWindow: 10, keepTurns: 0 }, /'keepTurns'/],
    [{ contextWindow: 10, keep: 2 }, /no option 'keep'/],
  ])('refuses a misuse (%#)', (options, why) => {
    expect(() => summarise(options as never)).toThrow(why);
  });
});
