import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  concat,
  defer,
  EMPTY,
  filter,
  lastValueFrom,
  map,
  merge,
  mergeMap,
  Subject,
  throwError,
} from 'rxjs';
import { createAgent, fromPull, type Model, textOf, tool } from '../index.js';
import { finish, type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';
import {
  calls$,
  type CallStoreDriver,
  createCallStore,
  inProcessCalls,
  type NewRecord,
  journal,
} from './index.js';
import { all, journalIn } from './stored-calls.test-support.js';
import { sessions } from '../layers/sessions/index.js';

/** A store whose appends go another way. */
const through = (
  driver: CallStoreDriver,
  append$: (
    records: readonly NewRecord[],
    write$: (records: readonly NewRecord[]) => ReturnType<CallStoreDriver['changes$']>,
  ) => ReturnType<CallStoreDriver['changes$']>,
): CallStoreDriver => ({
  ...driver,
  claim$: (callId) =>
    driver.claim$(callId).pipe(
      map((claim) => ({
        append$: (records: readonly NewRecord[]) => append$(records, (some) => claim.append$(some)),
      })),
    ),
});

const sender = (driver: CallStoreDriver) => {
  const sent: string[] = [];
  const send = tool({
    name: 'send',
    description: 'Sends.',
    run: () => (sent.push('it'), 'Sent.'),
  });
  const next: ScriptedAnswer = ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? [text('Done.')] : [toolCall('send')];
  const model = scriptedModel(next, next);
  const agent = createAgent({ model, tools: [send], use: [journal(createCallStore(driver))] });
  return { agent, sent, model };
};

const isIntent = ({ name }: NewRecord) => name.endsWith('/intent');

describe('a store of calls', () => {
  it('S6: one that fails stops the call before the next effect', async () => {
    const store = inProcessCalls();
    const failing = through(store, (records, write$) =>
      records.some(isIntent) ? throwError(() => new Error('disk full')) : write$(records),
    );
    const { agent, sent } = sender(failing);
    await expect(agent.call('?', { callId: 'c' })).rejects.toMatchObject({
      code: 'store',
      message: 'The journal could not be written: disk full',
    });
    expect(sent).toEqual([]);
    const again = sender(store);
    expect(textOf(await journalIn(store).resume(again.agent, 'c'))).toBe('Done.');
    expect(again.sent).toEqual(['it']);
  });

  it('S6: one that cannot be opened fails the call, and its listeners hear of it', async () => {
    const driver: CallStoreDriver = {
      ...inProcessCalls(),
      claim$: () => throwError(() => new Error('no such directory')),
    };
    const { agent } = sender(driver);
    const heard: string[] = [];
    agent.events$.subscribe(({ type }) => heard.push(type));
    await expect(agent.call('?')).rejects.toMatchObject({ code: 'store' });
    expect(heard).toEqual(['error']);
  });

  it('S6: one that is refused leaves nothing, and one that waits begins with its input', async () => {
    const store = inProcessCalls();
    const model = scriptedModel([text('One.')], [text('Two.')]);
    const durable = journal(createCallStore(store));
    const agent = createAgent({ model, use: [durable] });
    const session = sessions(agent).open('s');
    const waiting$ = defer(() => session.call$('2?', { callId: 'w', onBusy: 'queue' }));
    const refused$ = defer(() => session.call$('?', { callId: 'busy' }));
    const first$ = session.stream$('1?', { callId: 'c' }).pipe(
      filter(({ type }) => type === 'preCall'),
      mergeMap(() => merge(waiting$, refused$.pipe(catchError(() => EMPTY)))),
    );
    await lastValueFrom(first$);
    await expect(agent.call(42 as never, { callId: 'wrong' })).rejects.toThrow();
    const calls = await all(calls$(createCallStore(store)));
    expect(calls.map(({ callId, status }) => `${callId} ${status}`).sort()).toEqual([
      'c ended',
      'w ended',
    ]);
    const [begun, ...rest] = await lastValueFrom(store.read$('w'));
    expect([begun?.name, begun?.seq]).toEqual(['w/call', 0]);
    expect(rest.map(({ seq }) => seq)).toEqual(rest.map(({ seq }) => seq).sort((a, b) => a - b));
  });

  it('S7: a writer that has lost the right to write runs no further step', async () => {
    const lost$ = new Subject<never>();
    const store = inProcessCalls();
    const driver = through(store, (records, write$) =>
      records.some(isIntent)
        ? defer(() => {
            lost$.error(new Error('The lease is over.'));
            return write$(records);
          })
        : write$(records),
    );
    const losing: CallStoreDriver = {
      ...driver,
      claim$: (callId) => merge(driver.claim$(callId), lost$),
    };
    const { agent, sent } = sender(losing);
    await expect(agent.call('?', { callId: 'c' })).rejects.toMatchObject({ code: 'store' });
    expect(sent).toEqual([]);
  });

  it('I5: leaving a call gives the right to write back, when its events are written', async () => {
    const store = inProcessCalls();
    const gate$ = new Subject<void>();
    const slow = through(store, (records, write$) =>
      records.some(isIntent) ? concat(write$(records), gate$) : write$(records),
    );
    const { agent } = sender(slow);
    const call = agent.call$('?', { callId: 'c' }).subscribe();
    call.unsubscribe();
    await expect(lastValueFrom(store.claim$('c'))).rejects.toMatchObject({ code: 'conflict' });
    gate$.complete();
    const held = store.claim$('c').subscribe();
    held.unsubscribe();
    const records = await lastValueFrom(store.read$('c'));
    expect(records.at(-1)?.name).toBe('error');
  });

  it('X15: a record that is broken, foreign or hostile is a typed error', async () => {
    const broken = async (name: string, value: string) => {
      const store = inProcessCalls();
      await sender(store).agent.call('?', { callId: 'c' });
      const altered: CallStoreDriver = {
        ...store,
        read$: (callId, range) =>
          store
            .read$(callId, range)
            .pipe(
              map((records) =>
                records
                  .filter((record) => record.name !== 'postCall')
                  .map((record) =>
                    record.name === `c/${name}` ? { ...record, text: value } : record,
                  ),
              ),
            ),
      };
      return journalIn(altered).resume(sender(altered).agent, 'c');
    };
    const hostile: readonly (readonly [string, string])[] = [
      ['call', '{'],
      ['call', '{"version":2,"agent":"agent","input":[],"options":{},"given":[]}'],
      ['call', 'null'],
      ['open', '[]'],
      ['open', '{"history":[{"id":1}],"late":[],"createdAt":1}'],
      ['1', '{"status":"answered"}'],
      ['1', '"answered"'],
      ['1/0/intent', '{"toolCall":{"id":"x"},"failed":false}'],
      ['1/0', '{"__proto__":{"polluted":true}}'],
      ['1/0', '{"\\u005f_proto__":{"polluted":true}}'],
      ['2', '{"status":"answered","message":{"id":"c/2","role":"assistant","content":[{}]}}'],
      ['reply', '{}'],
    ];
    for (const [name, value] of hostile) {
      await expect(broken(name, value)).rejects.toMatchObject({ code: 'invalidState' });
    }
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('I16: a call waits while too many events are to be written', async () => {
    const gate$ = new Subject<never>();
    const stuck = through(inProcessCalls(), (records, write$) =>
      records.some(({ name }) => name === 'reasoningChunk')
        ? concat(write$(records), gate$)
        : write$(records),
    );
    let pulled = 0;
    async function* deltas() {
      while (pulled < 5_000) {
        pulled += 1;
        yield text('x');
      }
      yield await Promise.resolve(finish());
    }
    const model: Model = {
      name: 'm',
      stream$: (_, { demand }) => fromPull(() => deltas(), demand),
    };
    const agent = createAgent({ model, use: [journal(createCallStore(stuck))] });
    const reply = agent.call('?', { callId: 'c' });
    for (let turn = 0; turn < 10_000; turn += 1) await Promise.resolve();
    expect(pulled).toBeLessThan(1_100);
    gate$.complete();
    expect(textOf(await reply)).toHaveLength(5_000);
  });
});
