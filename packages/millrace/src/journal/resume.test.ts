import { describe, expect, it } from '@jest/globals';
import { from, lastValueFrom, map, NEVER } from 'rxjs';
import {
  type AgentEvent,
  type AgentOptions,
  approval,
  createAgent,
  inProcessMemory,
  interruptOn,
  type MemoryFactory,
  type Model,
  on,
  output,
  prepare,
  textOf,
  tool,
  type Use,
} from '../index.js';
import {
  finish,
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolCall,
} from '../testing/index.js';
import { leftAt, recordsOf, runUntil, stepsIn } from './dying-driver.test-support.js';
import { type CallStoreDriver, createCallStore, inProcessCalls, journal } from './index.js';
import {
  inProcessSessions,
  keepSessions,
  type Session,
  sessions,
} from '../layers/sessions/index.js';
import { strictHistory } from '../memories/repair.js';
import { jsonSchema } from '../schema/index.js';
import { begun, journalIn, storeWith } from './stored-calls.test-support.js';

/** An agent that pays twice, and says so. Each payment is one effect, by its key. */
const payer = (driver: CallStoreDriver, { use = [], ...options }: Partial<AgentOptions> = {}) => {
  const effects: string[] = [];
  const next: ScriptedAnswer = ({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? [text('Pa'), text('id.')]
      : [toolCall('pay', { to: 'ann' }), toolCall('pay', { to: 'bob' })];
  const model = scriptedModel(next, next, next, next);
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: jsonSchema({ type: 'object', properties: { to: { type: 'string' } }, required: ['to'] }),
    run: ({ to }, { idempotencyKey }) => {
      effects.push(idempotencyKey);
      return `Paid ${to}.`;
    },
  });
  const durable = journal(createCallStore(driver));
  return {
    agent: createAgent({ model, tools: [pay], use: [durable, ...use], ...options }),
    model,
    effects,
  };
};

type Payer = ReturnType<typeof payer>;

const pay$ = ({ agent }: Payer) => agent.call$('Pay.', { callId: 'c' });

/** As the process left it that ended when so many records were written. */
const leftAfter = (records: number, options?: Partial<AgentOptions>) => {
  const store = inProcessCalls();
  let before: Payer | undefined;
  runUntil(store, records, (dying) => pay$((before = payer(dying, options))));
  return { store, effects: before?.effects ?? [], asked: before?.model.requests.length ?? 0 };
};

const typesOf = (events: readonly AgentEvent[]): readonly string[] =>
  events.map((event) => (event.type === 'stepReplayed' ? `=${event.step}` : event.type));

describe('a call that is resumed', () => {
  it('S6: continues wherever its process ended, loses nothing, and repeats nothing in silence', async () => {
    const records = await recordsOf((driver) => pay$(payer(driver)));
    let uncertain = 0;
    for (let cut = 0; cut < records; cut += 1) {
      const { store, effects: done, asked } = leftAfter(cut);
      const after = payer(store);
      if (!(await stepsIn(store)).includes('call')) {
        await expect(journalIn(store).resume(after.agent, 'c')).rejects.toMatchObject({
          code: 'invalidResume',
        });
        continue;
      }
      const events = await record(journalIn(store).resumeStream$(after.agent, 'c'));
      expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
      const reported = events.filter(({ type }) => type === 'uncertain').length;
      uncertain += reported;
      const effects = [...done, ...after.effects];
      expect(new Set(effects).size).toBe(effects.length);
      expect(effects.length).toBeGreaterThanOrEqual(2 - reported);
      expect(asked + after.model.requests.length).toBeLessThanOrEqual(3);
    }
    expect(uncertain).toBeGreaterThan(0);
  });

  it('S6: of recorded steps, reports only that they were replayed, and continues the numbers', async () => {
    const { store } = leftAfter(await recordsOf((driver) => pay$(payer(driver)), '1/1/intent'));
    const { agent } = payer(store);
    const events = await record(
      journalIn(store, { onUncertain: 'rerun' }).resumeStream$(agent, 'c'),
    );
    expect(typesOf(events).slice(0, 8)).toEqual([
      ...['=call', '=open', '=1', '=1/0/intent', '=1/0', '=1/1/intent'],
      ...['uncertain', 'postActing'],
    ]);
    const written = (await lastValueFrom(store.read$('c'))).filter(({ kind }) => kind === 'event');
    expect(written.map(({ seq }) => seq)).toEqual(written.map((_, index) => index + 1));
    const names = written.map(({ name }) => name);
    expect(names.filter((name) => name === 'preCall')).toHaveLength(1);
    expect(names.filter((name) => name === 'postActing')).toHaveLength(2);
  });

  it.each<[string, Partial<AgentOptions>, string | undefined]>([
    ['the same', { instructions: ({ agent }) => (agent.length > 0 ? 'Old.' : '') }, 'Old.'],
    ['other', { instructions: 'New.' }, 'New.'],
    ['no', {}, undefined],
  ])('S7: continues with %s instructions, and warns if they differ', async (_, now, asked) => {
    const before = { instructions: 'Old.' };
    const made = await recordsOf((driver) => pay$(payer(driver, before)), '1/1');
    const { store } = leftAfter(made, before);
    const { agent, model } = payer(store, now);
    const events = await record(journalIn(store).resumeStream$(agent, 'c'));
    expect(model.requests.map(({ system }) => system)).toEqual([asked]);
    const warned = events.flatMap((it) => (it.type === 'warning' ? [it.message] : []));
    expect(warned).toEqual(asked === 'Old.' ? [] : [expect.stringMatching(/^The instructions/)]);
  });

  it('S7: takes back what was shown of a message that is begun again, which then has another id', async () => {
    const whole = inProcessCalls();
    await lastValueFrom(pay$(payer(whole)));
    const records = await lastValueFrom(whole.read$('c'));
    const { store } = leftAfter(records.findLastIndex(({ name }) => name === 'reasoningChunk'));
    const events = await record(journalIn(store).resumeStream$(payer(store).agent, 'c'));
    expect(events.find(({ type }) => type === 'messageDiscarded')).toMatchObject({
      messageId: 'c/2',
    });
    const deltas = events.filter((event) => event.type === 'reasoningChunk');
    expect(deltas.map(({ messageId }) => messageId)).toEqual(['c/2~2', 'c/2~2']);
    expect(events.at(-1)).toMatchObject({ reply: { id: 'c/2~2' } });
  });

  it('S6: gives the reply of a call that had ended, without a model', async () => {
    const store = inProcessCalls();
    const first = await lastValueFrom(pay$(payer(store)));
    const { agent, model, effects } = payer(store);
    expect(await journalIn(store).resume(agent, 'c')).toEqual(first);
    expect([model.requests, effects]).toEqual([[], []]);
  });

  it('S6, I1: a session has what it would have had, wherever its process ended', async () => {
    const call$ = (session: Session) => session.call$('Pay.', { callId: 'c' });
    const made = (driver: CallStoreDriver, memory: MemoryFactory) =>
      sessions(payer(driver).agent, { memory }).open('s');
    const held = (memory: MemoryFactory) => lastValueFrom(memory('s').load$());
    const whole = inProcessMemory();
    const records = await recordsOf((driver) => call$(made(driver, whole)));
    const ids = (await held(whole)).map(({ id }) => id.replace(/~\d/u, ''));
    for (let cut = 1; cut < records; cut += 1) {
      const store = inProcessCalls();
      const memory = inProcessMemory();
      runUntil(store, cut, (dying) => call$(made(dying, memory)));
      if (!(await stepsIn(store)).includes('call')) continue;
      const session = made(store, memory);
      await journalIn(store, { onUncertain: 'rerun' }).resume(session, 'c');
      expect((await held(memory)).map(({ id }) => id.replace(/~\d/u, ''))).toEqual(ids);
      expect(textOf(await session.call('And?'))).toBe('Paid.');
    }
  });

  it('S6: interceptors and guards do not see again what they have seen', async () => {
    const seen: string[] = [];
    const see = (what: string) => seen.push(what);
    const interceptors = [
      prepare((call$) => call$.pipe((prepared$) => (see('prepare'), prepared$))),
      on('postReasoning', (event$) => (see('postReasoning'), event$)),
      on('postActing', (event$) => (see('postActing'), event$)),
      on('postCall', (event$) => (see('postCall'), event$)),
    ];
    const store = inProcessCalls();
    await lastValueFrom(pay$(payer(store, { use: interceptors })));
    expect(seen.splice(0)).toContain('prepare');
    await journalIn(store).resume(payer(store, { use: interceptors }).agent, 'c');
    expect(seen).toEqual([]);
  });

  it('S6: keeps what interceptors of prepare have made of the call, and says what JSON cannot hold', async () => {
    const model: Model = { name: 'm', stream$: () => from([text('a'), finish()]) };
    const route = (temperature: number) =>
      prepare(
        map(({ options, ...call }) => ({
          ...call,
          options: { ...options, request: { temperature }, model },
        })),
      );
    const made = (driver: CallStoreDriver, temperature: number) =>
      payer(driver, { model: { ...model }, use: [route(temperature)] });
    const run$ = (driver: CallStoreDriver) => pay$(made(driver, 0.5));
    const store = await leftAt('open', run$);
    const events = await record(journalIn(store).resumeStream$(made(store, 1).agent, 'c'));
    expect(events.find(({ type }) => type === 'preReasoning')).toMatchObject({
      options: { temperature: 0.5 },
    });
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'warning',
        message: expect.stringContaining('cannot store the model that an interceptor set'),
      }),
    );
  });

  it('S6: options that JSON cannot hold are to be given again', async () => {
    const store = inProcessCalls();
    const { agent } = payer(store);
    const own = scriptedModel([text('Mine.')]);
    await agent.call('?', { callId: 'c', model: own, request: { temperature: 0 } });
    await expect(journalIn(store).resume(agent, 'c')).rejects.toMatchObject({
      code: 'invalidResume',
      message: expect.stringContaining("resume$(agent, 'c', { model })"),
    });
    expect(textOf(await journalIn(store).resume(agent, 'c', { model: own }))).toBe('Mine.');
  });

  it('S6: a call that was made with an approver is not resumed without one', async () => {
    const before = (driver: CallStoreDriver) =>
      payer(driver).agent.call$('Pay.', { callId: 'c', use: [approval(() => true)] });
    const store = await leftAt('1/0/intent', before);
    const { agent, effects } = payer(store);
    for (const use of [undefined, [strictHistory()]]) {
      await expect(
        journalIn(store).resume(agent, 'c', use === undefined ? {} : { use }),
      ).rejects.toMatchObject({
        code: 'invalidResume',
        message: expect.stringContaining("resume$(agent, 'c', { use: [approval(…)] })"),
      });
    }
    await journalIn(store).resume(agent, 'c', { use: [approval(() => false)] });
    expect(effects).toEqual([]);
  });

  it('S6: a call that something could have interrupted is resumed without it, but not without other layers', async () => {
    const stop = interruptOn(NEVER);
    const begunWith = (use: Use) =>
      leftAt('1/0/intent', (driver) =>
        payer(driver).agent.call$('Pay.', { callId: 'c', use: [...use, stop] }),
      );
    const alone = await begunWith([]);
    expect(textOf(await journalIn(alone).resume(payer(alone).agent, 'c'))).toBe('Paid.');
    const both = await begunWith([strictHistory()]);
    const resumed = (use: Use) => journalIn(both).resume(payer(both).agent, 'c', { use });
    await expect(resumed([stop])).rejects.toMatchObject({
      code: 'invalidResume',
      message: expect.stringContaining("resume$(agent, 'c', { use })"),
    });
    expect(textOf(await resumed([strictHistory()]))).toBe('Paid.');
  });

  it('S6: a call that was made with an output is not resumed without one', async () => {
    const form = output(jsonSchema({ type: 'object', properties: { done: { type: 'boolean' } } }));
    const answering = (driver: CallStoreDriver) => {
      const model = scriptedModel([text('{"done":true}')], [text('{"done":true}')]);
      return createAgent({ model, use: [journal(createCallStore(driver))] });
    };
    const store = await leftAt('1', (driver) =>
      answering(driver).call$('?', { callId: 'c', use: [form] }),
    );
    const resumed = (use: Use) => journalIn(store).resume(answering(store), 'c', { use });
    await expect(resumed([])).rejects.toMatchObject({
      code: 'invalidResume',
      message: expect.stringContaining("resume$(agent, 'c', { use: [output(…)] })"),
    });
    expect((await resumed([form])).output).toEqual({ done: true });
    const { driver } = await storeWith({ d: [begun('d', '?', { given: ['output'] })] });
    await expect(journalIn(driver).resume(answering(driver), 'd')).rejects.toMatchObject({
      code: 'invalidResume',
    });
  });

  it('S7: one call has one writer, and one id one call', async () => {
    const store = inProcessCalls();
    const { agent } = payer(store);
    await lastValueFrom(pay$({ ...payer(store), agent }));
    await expect(agent.call('Pay.', { callId: 'c' })).rejects.toMatchObject({ code: 'conflict' });
    const { store: left } = leftAfter(6);
    const [one, two] = [payer(left), payer(left)];
    const held = left.claim$('c').subscribe();
    await expect(journalIn(left).resume(one.agent, 'c')).rejects.toMatchObject({
      code: 'conflict',
    });
    held.unsubscribe();
    expect((await journalIn(left).resume(two.agent, 'c')).reason).toBe('answer');
    expect(await journalIn(left).resume(one.agent, 'c')).toMatchObject({ reason: 'answer' });
    expect(one.effects).toEqual([]);
  });

  it('S6: for a call that is unknown, or of another agent, the error names the fix', async () => {
    const { agent } = payer(inProcessCalls());
    const empty = journalIn(inProcessCalls());
    await expect(empty.resume(agent, 'c')).rejects.toThrow("There is no call 'c' in the journal");
    const store = inProcessCalls();
    await lastValueFrom(pay$(payer(store, { name: 'payer' })));
    await expect(
      journalIn(store).resume(payer(store, { name: 'other' }).agent, 'c'),
    ).rejects.toThrow("The call 'c' belongs to the agent 'payer', not 'other'");
    expect(() => journalIn(store).resume$(agent, '')).toThrow('resume$() needs the id of a call.');
  });

  it('S6: a journal among the layers of one call is resumed, whether it is given again or not', async () => {
    for (const again of [true, false]) {
      const durable = journalIn(inProcessCalls());
      const model = scriptedModel([text('a')]);
      const agent = createAgent({ model });
      await agent.call('?', { callId: 'c', use: [durable] });
      const use = again ? [durable] : [];
      expect(textOf(await durable.resume(agent, 'c', { use }))).toBe('a');
      expect(model.requests).toHaveLength(1);
    }
  });

  it('S6, S4: a kept session resumes itself: another way would not save it', async () => {
    const durable = journal(createCallStore(inProcessCalls()));
    const agent = createAgent({ model: scriptedModel() });
    const kept = await keepSessions(agent, inProcessSessions(), { journal: durable }).open('s');
    expect(() => durable.resume$(kept as never, 'c')).toThrow('A kept session resumes itself');
  });
});
