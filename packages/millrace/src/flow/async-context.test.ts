import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { concat, firstValueFrom, from, map, NEVER, of, Subject, take, throwError } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { coalesceMap } from '../operators/bounded.js';
import { marbles } from '../testing/index.js';
import { restoreAsyncContext } from './async-context.js';
import { createTrampoline } from './trampoline.js';

const user = new AsyncLocalStorage<string>();

describe('restoreAsyncContext', () => {
  it('I21: emits values, the error and the end in the context of the subscription', () => {
    for (const end of ['error', 'complete'] as const) {
      const shared = new Subject<string>();
      const seen: unknown[] = [];
      const note = (what: string) => () => seen.push([what, user.getStore()]);
      user.run('ann', () =>
        shared
          .pipe(restoreAsyncContext())
          .subscribe({ next: note('next'), error: note('error'), complete: note('complete') }),
      );
      shared.pipe(restoreAsyncContext()).subscribe({ error: () => undefined });
      user.run('bob', () => {
        shared.next('x');
        if (end === 'error') shared.error('x');
        else shared.complete();
        expect(user.getStore()).toBe('bob');
      });
      expect(seen).toEqual([
        ['next', 'ann'],
        [end, 'ann'],
      ]);
    }
  });

  it('I21: a subscription without a context does not see that of another', () => {
    const shared = new Subject<string>();
    const seen: unknown[] = [];
    shared.pipe(restoreAsyncContext()).subscribe(() => seen.push(user.getStore()));
    user.run('bob', () => shared.next('x'));
    expect(seen).toEqual([undefined]);
  });

  it('I21: keeps what a subscriber throws, and the context around it', () => {
    const shared = new Subject<string>();
    const failing$ = user.run('ann', () =>
      firstValueFrom(
        concat(
          shared.pipe(restoreAsyncContext()),
          throwError(() => 'late'),
        ),
      ),
    );
    user.run('bob', () => shared.complete());
    return expect(failing$).rejects.toBe('late');
  });

  it('changes neither the times nor the subscriptions of its source', () => {
    marbles(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('--a-b-|');
      expectObservable(source.pipe(restoreAsyncContext())).toBe('--a-b-|');
      expectObservable(source.pipe(restoreAsyncContext()), '---!').toBe('--a');
      expectObservable(of('a').pipe(restoreAsyncContext())).toBe('(a|)');
      expectObservable(NEVER.pipe(restoreAsyncContext())).toBe('');
      expectSubscriptions(source.subscriptions).toBe(['^-----!', '^--!']);
    });
  });
});

describe('queues', () => {
  it('I21: a trampoline runs each task in the context in which it was queued', () => {
    const run = createTrampoline();
    const seen: unknown[] = [];
    user.run('ann', () =>
      run(() => {
        user.run('bob', () => run(() => seen.push(user.getStore())));
        user.run('cem', () => run(() => seen.push(user.getStore()), 'whenIdle'));
        seen.push(user.getStore());
      }),
    );
    expect(seen).toEqual(['ann', 'bob', 'cem']);
  });

  it('I21: coalesceMap starts an inner Observable in the context of its source', () => {
    const gate = new Subject<void>();
    const seen: unknown[] = [];
    user.run('ann', () =>
      from(['a', 'b'])
        .pipe(
          map((text): AgentEvent => ({ ...event, message: text })),
          coalesceMap(() => {
            seen.push(user.getStore());
            return gate.pipe(take(1));
          }),
        )
        .subscribe(),
    );
    user.run('bob', () => gate.next());
    user.run('bob', () => gate.next());
    expect(seen).toEqual(['ann', 'ann']);
  });
});

const event = {
  type: 'warning',
  ...{ rootId: 'c', callId: 'c', agent: ['a'], iteration: 1, seq: 1, at: 0 },
} as const;
