import { describe, expect, it } from '@jest/globals';
import { endWith, finalize, map, mergeMap, NEVER, Subject, tap, throwError, toArray } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { createAgent } from '../index.js';
import { marbles, scriptedModel, text } from '../testing/index.js';
import { byCall } from './event-operators.js';
import { delta, postCall, shown } from './events.test-support.js';

const a = { call: 'a' };
const b = { root: 'a', call: 'a/b' };

describe('byCall', () => {
  it('groups by call, and completes a group after the last event of its call', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const event$ = hot('-a-b---A------B--', {
        a: delta('1', a),
        b: delta('2', b),
        A: postCall('', a),
        B: postCall('', b),
      });
      const told$ = event$.pipe(
        byCall(),
        mergeMap((call$) =>
          call$.pipe(
            map((event) => `${call$.key} ${shown(event)}`),
            endWith(`${call$.key} ends`),
          ),
        ),
      );
      expectObservable(told$, '^---------------!').toBe('-a-b---(Ax)---(By)', {
        a: 'a 1',
        b: 'a/b 2',
        A: 'a postCall',
        x: 'a ends',
        B: 'a/b postCall',
        y: 'a/b ends',
      });
      expectSubscriptions(event$.subscriptions).toBe('^---------------!');
    });
  });

  it('ends a group with a call that fails, too', async () => {
    const agent = createAgent({
      model: scriptedModel(
        [text('Hi.')],
        throwError(() => new Error('broken')),
        NEVER,
      ),
    });
    const ended: (readonly string[])[] = [];
    agent.events$
      .pipe(
        byCall(),
        mergeMap((call$) =>
          call$.pipe(
            map(({ type }) => type),
            toArray(),
          ),
        ),
      )
      .subscribe((types) => ended.push(types));
    await agent.call('?');
    await expect(agent.call('?')).rejects.toThrow('broken');
    agent.stream$('?').subscribe().unsubscribe();
    expect(ended.map((types) => types.at(-1))).toEqual(['postCall', 'error', 'error']);
  });

  it('X18: keeps nothing of ten thousand calls that are over', () => {
    const event$ = new Subject<AgentEvent>();
    let running = 0;
    let ended = 0;
    event$
      .pipe(
        byCall(),
        mergeMap((call$) =>
          call$.pipe(
            tap({ subscribe: () => (running += 1), complete: () => (ended += 1) }),
            finalize(() => (running -= 1)),
          ),
        ),
      )
      .subscribe();
    for (let n = 0; n < 10_000; n += 1) {
      event$.next(delta('t', { call: `${n}` }));
      event$.next(postCall('', { call: `${n}` }));
    }
    expect([running, ended]).toEqual([0, 10_000]);
  });

  it('begins a call that was joined late in its middle', () => {
    const seen: string[] = [];
    const event$ = new Subject<AgentEvent>();
    event$
      .pipe(
        byCall(),
        mergeMap((call$) => call$.pipe(map(shown), endWith('end'))),
      )
      .subscribe((it) => seen.push(it));
    event$.next(postCall('', a));
    expect(seen).toEqual(['postCall', 'end']);
  });
});
