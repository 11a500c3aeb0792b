import { describe, expect, it } from '@jest/globals';
import { concat, firstValueFrom, map, NEVER, of, Subject, tap } from 'rxjs';
import { createAgent, interruptOn, type Model, textOf } from '../index.js';
import { finish, text } from '../testing/index.js';
import { createCallStore, fork$, inProcessCalls, steps$, journal } from './index.js';
import { all, begun, step, storeWith } from './stored-calls.test-support.js';

describe('a fork of a call that was interrupted', () => {
  it('S7: is not, if the interrupt is after the point', async () => {
    const store = createCallStore(inProcessCalls());
    const stop$ = new Subject<string>();
    const durable = journal(store);
    const agentOf = (stream$: Model['stream$']) =>
      createAgent({ model: { name: 'm', stream$ }, use: [durable] });
    const slow = agentOf(() => concat(of(text('Hal')), NEVER).pipe(tap(stop)));
    const quick = agentOf(() => of(text('Anew.'), finish()));
    function stop() {
      stop$.next('Stopped.');
    }
    await slow.call('?', { callId: 'c', use: [interruptOn(stop$)] });
    const outcome = async (at: string) => {
      const forked = await firstValueFrom(fork$(store, 'c', { at }));
      const reply = await durable.resume(quick, forked);
      return `${reply.reason}: ${textOf(reply)}`;
    };
    expect(await outcome('1')).toBe('answer: Anew.');
    expect(await outcome('interrupt')).toBe('answer: Anew.');
    // What it has cut is kept.
    expect(await outcome('reply')).toBe('interrupted: Stopped.');
  });

  it('S7: keeps input from outside only if a result of it is kept, of the same call', async () => {
    const intent = step('c/1/0/intent', { toolCall: { type: 'tool_call', id: 't' } });
    const names = ['call', 'seat', 'open', '1', 't/open', 't/interrupt', 't/1', 't/u/open'];
    const store = await storeWith({
      c: [
        ...[begun('c'), step('c/seat', '"seated"'), step('c/open', {}), step('c/1', {}), intent],
        ...['t/open', 't/interrupt', 't/u/open', 't/u/interrupt', 't/u/1', 't/u/reply', 't/1'].map(
          (name) => step(`c/${name}`, {}),
        ),
        ...[step('c/interrupt', {}), step('c/1/0', {}), step('c/reply', {})],
      ],
    });
    const kept = async (at: string) => {
      const id = await firstValueFrom(fork$(store, 'c', { at }));
      return all(steps$(store, id).pipe(map((it) => it.id)));
    };
    expect(await kept('open')).toEqual(['call']);
    expect(await kept('1')).toEqual(names.slice(0, 3));
    expect(await kept('t/u/1')).toEqual([...names.slice(0, 5), 't/u/open']);
    expect(await kept('t/u/reply')).toEqual([
      ...names.slice(0, 5),
      ...['t/u/open', 't/u/interrupt', 't/u/1'],
    ]);
    expect(await kept('t/1')).not.toContain('t/interrupt');
    expect(await kept('reply')).toEqual([
      ...names.slice(0, 4),
      ...['1/0/intent', 't/open', 't/interrupt', 't/u/open', 't/u/interrupt', 't/u/1'],
      ...['t/u/reply', 't/1', '1/0', 'interrupt'],
    ]);
  });
});
