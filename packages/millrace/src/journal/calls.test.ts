import { describe, expect, it } from '@jest/globals';
import { concat, filter, mergeMap, of, take, throwError } from 'rxjs';
import { MillraceError } from '../index.js';
import { calls$, createCallStore, inProcessCalls, type NewRecord, steps$ } from './index.js';
import { payer } from './payer.test-support.js';
import { all, begun, event, step, storeWith } from './stored-calls.test-support.js';

const endOf = (callId: string, more: Readonly<Record<string, unknown>>): NewRecord =>
  event(2, { rootId: callId, callId, ...more });

describe('calls$', () => {
  it('S7: lists calls, the last written to first, with what was asked and what became of them', async () => {
    let now = 0;
    const tick = () => (now += 1);
    const postCall = (reason: string) => ({ type: 'postCall', reply: { reason } });
    const error = { code: 'timeout', message: 'Too late.', retryable: true };
    const store = await storeWith(
      {
        ended: [begun('ended', 'What?', { sessionId: 's' }), endOf('ended', postCall('answer'))],
        waiting: [begun('waiting'), endOf('waiting', postCall('suspended'))],
        failed: [begun('failed'), endOf('failed', { type: 'error', error })],
        // The end of a call below it.
        broken: [
          begun('broken'),
          event(2, { rootId: 'broken', callId: 'broken/t', ...postCall('answer') }),
        ],
        quiet: [begun('quiet'), step('quiet/reply', { reason: 'answer' })],
        queued: [
          event(1, { type: 'queued' }),
          begun('queued', '\n'.repeat(9) + 'word '.repeat(99)),
        ],
      },
      tick,
    );
    const calls = await all(calls$(store));
    expect(calls.map(({ callId, status }) => `${callId} ${status}`)).toEqual([
      'queued unfinished',
      'quiet ended',
      'broken unfinished',
      'failed failed',
      'waiting suspended',
      'ended ended',
    ]);
    expect(calls.at(-1)).toEqual({
      ...{ callId: 'ended', createdAt: 1, updatedAt: 2, status: 'ended', reason: 'answer' },
      ...{ agent: 'agent', sessionId: 's', question: 'What?' },
    });
    expect(calls[3]).toMatchObject({ reason: 'timeout' });
    expect(calls[0]).toMatchObject({ question: `${'word '.repeat(39)}word…` });
    expect(Object.isFrozen(calls[0])).toBe(true);
    const newest = await all(calls$(store).pipe(take(1)));
    expect(newest.map(({ callId }) => callId)).toEqual(['queued']);
  });

  it('S7: reads one that was interrupted before it had begun', async () => {
    const interrupt = { message: 'Stop.', behind: 0 };
    const store = await storeWith({
      c: [step('c/interrupt', interrupt), begun('c'), endOf('c', { type: 'preCall' })],
      none: [step('none/interrupt', interrupt)],
    });
    const calls = await all(calls$(store));
    expect(calls.map(({ callId, status }) => `${callId} ${status}`).sort()).toEqual([
      'c unfinished',
      'none unreadable',
    ]);
  });

  it('S7: a call that a process has open is running', async () => {
    const driver = inProcessCalls(() => 0);
    const store = createCallStore(driver);
    const listed$ = payer(driver)
      .agent.stream$('Pay.', { callId: 'c' })
      .pipe(
        filter(({ type }) => type === 'postReasoning'),
        mergeMap(() => calls$(store)),
        take(1),
      );
    expect(await all(listed$)).toMatchObject([{ callId: 'c', status: 'running' }]);
  });

  it('S6: one that cannot be read says why, and hides no other', async () => {
    const store = await storeWith({
      fine: [begun('fine')],
      text: [step('text/call', 'no JSON')],
      later: [step('later/call', { version: 2 })],
      polluting: [step('polluting/call', '{"__proto__":{"version":1}}')],
      beginless: [step('beginless/1', {}), step('beginless/2', {})],
      endless: [begun('endless'), endOf('endless', { type: 'postCall', reply: 'none' })],
      event: [begun('event'), { kind: 'event', name: 'error', seq: 1, text: '{}' }],
    });
    const unreadable = (callId: string) =>
      throwError(() => new MillraceError('invalidState', `${callId} is torn.`));
    const driver = {
      ...store.driver,
      read$: (callId: string) =>
        callId === 'beginless' ? unreadable(callId) : store.driver.read$(callId),
    };
    const calls = await all(calls$({ driver }));
    const whys = calls.map((call) => [
      call.callId,
      call.status === 'unreadable' ? call.why : call.status,
    ]);
    expect(Object.fromEntries(whys)).toEqual({
      fine: 'unfinished',
      text: expect.stringContaining('Its beginning is damaged'),
      later: expect.stringContaining('has format version 2'),
      polluting: expect.stringContaining('is damaged'),
      beginless: 'beginless is torn.',
      endless: 'Its reply is invalid.',
      event: expect.stringContaining('is not an event'),
    });
    expect('version' in {}).toBe(false);
    const failing = {
      ...store.driver,
      list$: () =>
        concat(
          of([]),
          throwError(() => new Error('Gone.')),
        ),
    };
    await expect(all(calls$({ driver: failing }))).rejects.toMatchObject({ code: 'store' });
  });
});

describe('steps$', () => {
  it('S7: reports each step in the order of the loop, with what it gave', async () => {
    const driver = inProcessCalls(() => 0);
    await payer(driver).agent.call('Pay all.', { callId: 'c' });
    const steps = await all(steps$(createCallStore(driver), 'c'));
    const shown = steps.map(({ id, kind, iteration, summary }) =>
      [id, kind, iteration ?? '-', summary].join(' | '),
    );
    expect(shown).toEqual([
      'call | call | - | Pay all.',
      'open | open | - | 0 messages of history',
      '1 | model | 1 | First pay({"to":"ann"}) helper({"user_prompt":"Look."}) pay({"to":"bob"})',
      '1/0/intent | intent | 1 | pay({"to":"ann"})',
      '1/0 | tool | 1 | pay({"to":"ann"}): pay ann.',
      '1/1/intent | intent | 1 | helper({"user_prompt":"Look."})',
      'call_1_1/open | open | 1 | 0 messages of history',
      'call_1_1/1 | model | 1 | look({"to":"dan"})',
      'call_1_1/1/0/intent | intent | 1 | look({"to":"dan"})',
      'call_1_1/1/0 | tool | 1 | look({"to":"dan"}): look dan.',
      'call_1_1/2 | model | 1 | Looked.',
      'call_1_1/reply | reply | 1 | answer: Looked.',
      '1/1 | tool | 1 | helper({"user_prompt":"Look."}): Looked.',
      '1/2/intent | intent | 1 | pay({"to":"bob"})',
      '1/2 | tool | 1 | pay({"to":"bob"}): pay bob.',
      '2 | model | 2 | pay({"to":"cat"})',
      '2/0/intent | intent | 2 | pay({"to":"cat"})',
      '2/0 | tool | 2 | pay({"to":"cat"}): pay cat.',
      '3 | model | 3 | 5: pay ann. Looked. pay bob. pay cat.',
      'reply | reply | - | answer: 5: pay ann. Looked. pay bob. pay cat.',
    ]);
  });

  it('S6: a step that cannot be read is reported, and so is everything else', async () => {
    const store = await storeWith({
      c: [
        begun('c'),
        ...[step('c/1', 'no JSON'), step('c/1/0/intent', '[]'), step('c/1/0', '{"result":{}}')],
        ...[step('elsewhere/open', {}), step('c/notes', 'null'), step('c/retrieve', [1])],
      ],
    });
    const steps = await all(steps$(store, 'c'));
    expect(steps.map(({ id, kind }) => [id, kind])).toEqual([
      ['call', 'call'],
      ['1', 'model'],
      ['1/0/intent', 'intent'],
      ['1/0', 'other'],
      ['elsewhere/open', 'open'],
      ['notes', 'other'],
      ['retrieve', 'other'],
    ]);
    expect(steps[1]?.summary).toContain('Cannot be read');
    await expect(all(steps$(store, 'none'))).rejects.toMatchObject({ code: 'invalidResume' });
  });
});
