import { describe, expect, it } from '@jest/globals';
import { concatMap, defer, lastValueFrom, map, type Observable, Subject } from 'rxjs';
import { type AgentEvent, type AgentOptions, createAgent, tool } from '../index.js';
import { record, type ScriptedAnswer, scriptedModel, text, toolUse } from '../testing/index.js';
import { type CallStoreDriver, createCallStore, inProcessCalls, type NewRecord } from './index.js';

/** A process that ends when so many records are written: what comes behind is lost, and nobody hears of it. */
const endingAfter = (driver: CallStoreDriver, records: number) => {
  const ended$ = new Subject<never>();
  let left = records;
  const dying: CallStoreDriver = {
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map((claim) => ({
          append$: (batch: readonly NewRecord[]): Observable<unknown> =>
            defer(() => {
              const kept = batch.slice(0, left);
              left -= kept.length;
              const done$ = claim.append$(kept);
              return kept.length === batch.length ? done$ : done$.pipe(concatMap(() => ended$));
            }),
        })),
      ),
  };
  return { driver: dying, end: () => ended$.error(new Error('killed')) };
};

/** Makes a call in a process that ends when so many records are written. */
const callUntil = (driver: CallStoreDriver, records: number, options?: Partial<AgentOptions>) => {
  const dying = endingAfter(driver, records);
  const made = payer(dying.driver, options);
  made.agent.call$('Pay.', { callId: 'c' }).subscribe({ error: () => undefined });
  dying.end();
  return made;
};

const plain = (name: string) => name.replace(/^c\//u, '');

const stepsIn = async (driver: CallStoreDriver): Promise<readonly string[]> =>
  (await lastValueFrom(driver.read$('c', { kind: 'step' }), { defaultValue: [] })).map(({ name }) =>
    plain(name),
  );

/** An agent that pays twice, and says so. Each payment is one effect, by its key. */
const payer = (driver: CallStoreDriver, options: Partial<AgentOptions> = {}) => {
  const effects: string[] = [];
  const next: ScriptedAnswer = ({ messages }) =>
    messages.some(({ role }) => role === 'tool')
      ? [text('Paid.')]
      : [toolUse('pay', { to: 'ann' }), toolUse('pay', { to: 'bob' })];
  const model = scriptedModel(next, next);
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] } as const,
    run: ({ to }, { idempotencyKey }) => {
      effects.push(idempotencyKey);
      return `Paid ${to}.`;
    },
  });
  const agent = createAgent({
    model,
    tools: [pay],
    journal: createCallStore(driver),
    ...options,
  });
  return { agent, model, effects };
};

const typesOf = (events: readonly AgentEvent[]): readonly string[] =>
  events.map((event) => (event.type === 'stepReplayed' ? `=${event.step}` : event.type));

/** How many records a whole call makes: up to the one of a step, or all. */
const recordsUpTo = async (step?: string, options?: Partial<AgentOptions>): Promise<number> => {
  const driver = inProcessCalls();
  await payer(driver, options).agent.call('Pay.', { callId: 'c' });
  const records = await lastValueFrom(driver.read$('c'));
  return step === undefined
    ? records.length
    : records.findIndex(({ name }) => name === `c/${step}`) + 1;
};

describe('a call that is resumed', () => {
  it('S6: goes on wherever it was broken off, loses nothing, and does nothing twice in silence', async () => {
    const records = await recordsUpTo();
    let uncertain = 0;
    for (let cut = 0; cut < records; cut += 1) {
      const store = inProcessCalls();
      const before = callUntil(store, cut);
      const after = payer(store);
      if (!(await stepsIn(store)).includes('call')) {
        await expect(after.agent.resume('c')).rejects.toMatchObject({ code: 'invalidResume' });
        continue;
      }
      const events = await record(after.agent.resumeStream$('c'));
      expect(events.at(-1)).toMatchObject({ type: 'postCall', reply: { reason: 'answer' } });
      const reported = events.filter(({ type }) => type === 'uncertain').length;
      uncertain += reported;
      const effects = [...before.effects, ...after.effects];
      expect(new Set(effects).size).toBe(effects.length);
      expect(effects.length).toBeGreaterThanOrEqual(2 - reported);
      const asked = before.model.requests.length + after.model.requests.length;
      expect(asked).toBeLessThanOrEqual(3);
    }
    expect(uncertain).toBeGreaterThan(0);
  });

  it('S6: tells of what is written down only that it was replayed, and numbers on', async () => {
    const store = inProcessCalls();
    callUntil(store, await recordsUpTo('1/1/intent'));
    const events = await record(
      payer(store, { defaults: { onUncertain: 'rerun' } }).agent.resumeStream$('c'),
    );
    expect(typesOf(events).slice(0, 8)).toEqual([
      ...['=call', '=open', '=1', '=1/0/intent', '=1/0', '=1/1/intent'],
      'uncertain',
      'postActing',
    ]);
    const written = (await lastValueFrom(store.read$('c'))).filter(({ kind }) => kind === 'event');
    expect(written.map(({ seq }) => seq)).toEqual(written.map((_, index) => index + 1));
    const all = written.map(({ text: json }) => (JSON.parse(json) as AgentEvent).type);
    expect(all.filter((type) => type === 'preCall')).toHaveLength(1);
    expect(all.filter((type) => type === 'postActing')).toHaveLength(2);
  });

  it('S6: gives the reply of a call that had ended, without a model', async () => {
    const store = inProcessCalls();
    const first = await payer(store).agent.call('Pay.', { callId: 'c' });
    const { agent, model, effects } = payer(store);
    expect(await agent.resume('c')).toEqual(first);
    expect([model.requests, effects]).toEqual([[], []]);
  });
});
