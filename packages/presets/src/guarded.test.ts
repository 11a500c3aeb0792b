import { describe, expect, it } from '@jest/globals';
import { catchError, EMPTY, lastValueFrom, map, NEVER, of, throwError } from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  MillraceError,
  only,
  prepare,
  type Reply,
  suspend,
  textOf,
  tool,
  toolResults,
} from 'millrace';
import { guardInput } from 'millrace/guards';
import type { Retriever } from 'millrace/retrieval';
import { jsonSchema } from 'millrace/schema';
import { marbles, record, scriptedModel, text, toolCall } from 'millrace/testing';
import { createSemaphore } from 'millrace/traffic';
import { inProcessLongTermMemory, withLongTermMemory } from 'millrace/long-term-memory';
import { guarded } from './index.js';
import { sessions } from 'millrace/sessions';

const spin = tool({ name: 'spin', description: 'Spins.', run: () => 'again' });
let waiting = '';
const spinning = (times: number) => Array.from({ length: times }, () => [toolCall('spin')]);

describe('the preset guarded', () => {
  it('M4: lets 20 calls run at the same time, and 100 wait', () => {
    const agent = createAgent(guarded({ model: { name: 'm', stream$: () => NEVER } }));
    const failures: unknown[] = [];
    const calls = Array.from({ length: 121 }, () =>
      agent.call$('?').subscribe({ error: (error: unknown) => failures.push(error) }),
    );
    expect(failures).toEqual([expect.objectContaining({ code: 'queueFull', retryable: true })]);
    calls.forEach((call) => call.unsubscribe());
  });

  it('M4: gives a call 30 s and a tool 15 s, the wait for a place counted', () => {
    marbles(({ scheduler, expectObservable }) => {
      const stuck = tool({ name: 'stuck', description: 'Never ends.', run: () => NEVER });
      const model = scriptedModel([toolCall('stuck')], [text('Well.')]);
      const agent = createAgent(guarded({ model, tools: [stuck] }));
      expectObservable(agent.call$('?', { scheduler }).pipe(map(textOf))).toBe('15s (a|)', {
        a: 'Well.',
      });
    });
    marbles(({ scheduler, expectObservable }) => {
      const silent = { name: 'm', stream$: () => NEVER };
      const agent = createAgent(guarded({ model: silent }, { maxCalls: 1 }));
      const code$ = () =>
        agent.stream$('?', { scheduler }).pipe(
          only('error'),
          map(({ error }) => error.code),
          catchError(() => EMPTY),
        );
      expectObservable(code$()).toBe('30s (t|)', { t: 'timeout' });
      expectObservable(code$()).toBe('30s (t|)', { t: 'timeout' });
    });
  });

  it('M4: answers after ten tools', async () => {
    const model = scriptedModel(...spinning(10), [text('Enough.')]);
    const limits = { maxToolCalls: undefined, timeouts: { callMs: undefined } } as never;
    const reply = await createAgent(guarded({ model, tools: [spin], limits })).call('?');
    expect(reply).toMatchObject({ reason: 'answer', iterations: 11 });
    expect(reply.toolCalls).toHaveLength(10);
    expect(model.requests[10]?.toolChoice).toBe('none');
  });

  it('M4: remembers what was said and answered, and shows the last ten turns', async () => {
    const memory = inProcessMemory();
    const model = scriptedModel(
      ...Array.from({ length: 12 }, (_, n) => [[toolCall('spin')], [text(`answer ${n}`)]]).flat(),
    );
    const session = sessions(createAgent(guarded({ model, tools: [spin] })), { memory }).open('s');
    for (let n = 0; n < 12; n += 1) await session.call(`question ${n}`);
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored).toHaveLength(24);
    expect(stored.every(({ role }) => role !== 'tool')).toBe(true);
    const shown = model.requests.at(-1)?.messages.map(textOf) ?? [];
    expect(shown[0]).toMatch(/^\[2 earlier messages, .* left out here\.\]\n\nquestion 1$/);
    expect(shown[20]).toBe('question 11');
  });

  it('M4: shows every turn, without tools, if the memory selects them itself', async () => {
    const answers = Array.from({ length: 12 }, () => [[toolCall('spin')], [text('Yes.')]]).flat();
    const model = scriptedModel(...answers);
    const agent = createAgent(guarded({ model, tools: [spin] }, { turns: Infinity }));
    const session = sessions(agent).open('s');
    for (let n = 0; n < 12; n += 1) await session.call(`question ${n}`);
    const shown = model.requests.at(-2)?.messages ?? [];
    expect(shown.map(({ role }) => role)).not.toContain('tool');
    expect(shown.map(textOf)).toHaveLength(23);
  });

  it('T13: continues with all that a suspended turn has found, and asks for nothing twice', async () => {
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      input: jsonSchema({
        type: 'object',
        properties: { to: { type: 'string' } },
        required: ['to'],
      }),
      run: ({ to }) => suspend({ to }),
    });
    const model = scriptedModel(
      [toolCall('spin')],
      [toolCall('pay', { to: 'A' })],
      [toolCall('pay', { to: 'B' })],
      [text('Both are paid.')],
      [text('Bye.')],
    );
    const session = sessions(createAgent(guarded({ model, tools: [spin, pay] }))).open('s');
    for (const to of ['A', 'B']) {
      const reply = await (to === 'A'
        ? session.call('Pay A and B.')
        : session.call(toolResults({ [waiting]: 'Paid.' })));
      expect(reply.suspensions?.map(({ request }) => request)).toEqual([{ to }]);
      waiting = reply.suspensions?.[0]?.toolCall.id ?? '';
    }
    const last = await session.call(toolResults({ [waiting]: 'Paid.' }));
    expect(textOf(last)).toBe('Both are paid.');
    expect(model.requests[3]?.messages.map(({ role }) => role)).toEqual([
      'user',
      ...['assistant', 'tool', 'assistant', 'tool', 'assistant', 'tool'],
    ]);
    await session.call('Thanks!');
    expect(model.requests[4]?.messages.map(textOf)).toEqual([
      'Pay A and B.',
      'Both are paid.',
      'Thanks!',
    ]);
  });

  it('T13: keeps a result that was brought together with words', async () => {
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => suspend('?') });
    const model = scriptedModel([toolCall('pay')], [toolCall('pay')], [text('Done.')]);
    const session = sessions(createAgent(guarded({ model, tools: [pay] }))).open('s');
    const idOf = (reply: Reply) => reply.suspensions?.[0]?.toolCall.id ?? '';
    const first = idOf(await session.call('Pay A.'));
    const second = idOf(await session.call([toolResults({ [first]: 'RESULT1' }), 'And B.']));
    await session.call(toolResults({ [second]: 'RESULT2' }));
    const told = JSON.stringify(model.requests[2]?.messages);
    expect(told).toContain('RESULT1');
    expect(told).toContain('RESULT2');
  });

  it('T13: an old result answers no new use of the same id', async () => {
    const pay = tool({ name: 'pay', description: 'Pays.', run: () => suspend('?') });
    const model = scriptedModel(
      [toolCall('pay')],
      [text('Paid.')],
      [toolCall('pay')],
      [text('Paid again.')],
    );
    const session = sessions(createAgent(guarded({ model, tools: [pay] }, { turns: 1 }))).open('s');
    const first = await session.call('Pay A.');
    await session.call(toolResults({ [first.suspensions?.[0]?.toolCall.id ?? '']: 'YES' }));
    const second = await session.call('Pay B.');
    const id = second.suspensions?.[0]?.toolCall.id ?? '';
    expect(textOf(await session.call(toolResults({ [id]: 'NO' })))).toBe('Paid again.');
    expect(JSON.stringify(model.requests[3]?.messages)).toContain('NO');
    expect(JSON.stringify(model.requests[3]?.messages)).not.toContain('YES');
  });

  it('C1: what guards refuse does not wait', async () => {
    const stuck = createSemaphore({ max: 1 });
    stuck.hold$(() => NEVER).subscribe();
    const no = guardInput(() => false);
    const agent = createAgent(
      guarded({ model: scriptedModel() }, { calls: stuck, guards: [[no]] }),
    );
    await expect(agent.call('?')).rejects.toMatchObject({ code: 'guardRejected' });
  });

  it('C4, C6: what is vetoed does not wait either, and requests are sent again as configured', async () => {
    const stuck = createSemaphore({ max: 1, maxQueue: 0 });
    stuck.hold$(() => NEVER).subscribe();
    const vetoed = createAgent(
      guarded({ model: scriptedModel() }, { calls: stuck, guards: [prepare(() => EMPTY)] }),
    );
    expect((await vetoed.call('?')).reason).toBe('stopped');
    let requests = 0;
    const down = {
      name: 'm',
      stream$: () => {
        requests += 1;
        return throwError(() => new MillraceError('server', 'Down.'));
      },
    };
    await expect(
      createAgent(guarded({ model: down }, { retry: false })).call('?'),
    ).rejects.toThrow();
    expect(requests).toBe(1);
  });

  it('M4: fits requests into 128,000 tokens, and refuses what is too long', async () => {
    const model = scriptedModel([text('Read.')]);
    const agent = createAgent(guarded({ model }));
    await expect(agent.call('x'.repeat(32_001))).rejects.toMatchObject({ code: 'guardRejected' });
    const small = createAgent(guarded({ model }, { contextWindow: 5_000, guards: [] }));
    await expect(small.call('x y '.repeat(5_000))).rejects.toMatchObject({
      code: 'contextTooLong',
      over: expect.any(Number),
    });
    expect(model.requests).toEqual([]);
  });

  it('M4: keeps 4,096 of 128,000 tokens for the answer', async () => {
    const counter = { count: (said: string) => Number(/\d+/.exec(said)?.[0] ?? 0) };
    const model = scriptedModel([text('Read.')]);
    const agent = createAgent(guarded({ model }, { counter }));
    expect((await agent.call('123000 tokens')).reason).toBe('answer');
    await expect(agent.call('124000 tokens')).rejects.toMatchObject({ code: 'contextTooLong' });
  });

  it('M4: shows no more than 20 tools, and passages of the retriever', async () => {
    const tools = Array.from({ length: 25 }, (_, n) =>
      tool({ name: `t${n}`, description: 'A tool.', run: () => '' }),
    );
    const retriever: Retriever = { retrieve$: () => of([{ source: 'a.md', text: 'Mills.' }]) };
    const model = scriptedModel([text('Yes [1].')]);
    const events = await record(createAgent(guarded({ model, tools }, { retriever })).stream$('?'));
    expect(model.requests[0]?.tools).toHaveLength(20);
    expect(model.requests[0]?.system).toContain('[1] a.md');
    expect(events.at(-1)).toMatchObject({ reply: { sources: [{ source: 'a.md' }] } });
  });

  it('C1: goes with withLongTermMemory(), inside and outside of it', async () => {
    const forAnn = { metadata: { userId: 'ann' } };
    for (const nested of [true, false]) {
      const memory = inProcessLongTermMemory();
      const tea = { text: 'Likes tea.', kind: 'fact' } as const;
      await lastValueFrom(memory.record$({ userId: 'ann' }, [tea]));
      const model = scriptedModel([toolCall('retrieve_memory', { query: 'tea' })], [text('Tea.')]);
      const settings = { memory, mode: 'both' } as const;
      const options = nested
        ? guarded(withLongTermMemory({ model }, settings))
        : withLongTermMemory(guarded({ model }), settings);
      const kept = inProcessMemory();
      await sessions(createAgent(options), { memory: kept }).open('s').call('Which tea?', forAnn);
      const shown = (model.requests[1]?.messages ?? []).map((it) => JSON.stringify(it));
      expect(shown.filter((it) => it.includes('Likes tea.'))).toHaveLength(2);
      const stored = await lastValueFrom(kept('s').load$());
      expect(stored.map(textOf)).toEqual(['Which tea?', 'Tea.']);
    }
  });

  it('M4: is what its options say first', async () => {
    const model = scriptedModel(...spinning(2), [text('Enough.')]);
    const limits = { maxToolCalls: 2, timeouts: { toolMs: 1 } };
    const reply = await createAgent(guarded({ model, tools: [spin], limits })).call('?');
    expect(reply.toolCalls).toHaveLength(2);
    expect(guarded({ model, limits })).toMatchObject({
      limits: { maxToolCalls: 2, timeouts: { callMs: 30_000, toolMs: 1 } },
    });
    expect(() => guarded(guarded({ model }))).not.toThrow();
    expect(() => guarded({ model }, { guards: [() => true] as never })).toThrow(/'guards' must be/);
    expect(() => guarded({ model }, { turns: 0 })).toThrow(/guarded\(\): 'turns' must be/);
    expect(() => guarded({ model }, { max: 1 } as never)).toThrow(/has no option 'max'/);
  });
});
