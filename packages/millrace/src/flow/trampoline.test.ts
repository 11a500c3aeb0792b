import { describe, expect, it } from '@jest/globals';
import { of, tap } from 'rxjs';
import { createTrampoline, subscribeOnTrampoline } from './trampoline.js';

describe('a trampoline', () => {
  it('runs a task immediately, and one that comes within it after it', () => {
    const order: string[] = [];
    const run = createTrampoline();
    run(() => {
      run(() => order.push('inner'));
      order.push('outer');
    });
    expect(order).toEqual(['outer', 'inner']);
  });

  it('is free again after a task that threw, and drops what waited for it', () => {
    const order: string[] = [];
    const run = createTrampoline();
    expect(() =>
      run(() => {
        run(() => order.push('dropped'));
        throw new Error('no');
      }),
    ).toThrow('no');
    run(() => order.push('next'));
    expect(order).toEqual(['next']);
  });

  it('does not subscribe for a subscriber that has left meanwhile', () => {
    const seen: number[] = [];
    const run = createTrampoline();
    run(() => {
      const waiting = of(1)
        .pipe(
          tap((value) => seen.push(value)),
          subscribeOnTrampoline(run),
        )
        .subscribe();
      waiting.unsubscribe();
    });
    expect(seen).toEqual([]);
  });
});
