import { describe, expect, it } from '@jest/globals';
import { marbles } from 'millrace/testing';
import { identity, map, type Observable, range, take, tap } from 'rxjs';
import { heartbeat, joinTexts } from './join-texts.js';

const values = { j: 'abc', h: heartbeat, a: 'a' };

describe('the texts of a body', () => {
  it('are joined if they are emitted together, and the end follows them', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const text$ = cold('-(abc)-a--(abc|)');
      expectObservable(text$.pipe(joinTexts(identity))).toBe('-j-----a--(j|)', values);
      expectSubscriptions(text$.subscriptions).toBe('^---------!');
    });
  });

  it('come before an error', () => {
    marbles(({ cold, expectObservable }) => {
      const error = new Error('no');
      const text$ = cold('-a--(abc#)', undefined, error);
      expectObservable(text$.pipe(joinTexts(identity))).toBe('-a--(j#)', values, error);
    });
  });

  it('have heartbeats among them, which end with them, or when the reader leaves', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const beating = joinTexts(identity<string>, { heartbeatMs: 3 });
      const text$ = cold('----a--|');
      expectObservable(text$.pipe(beating)).toBe('---ha-h|', values);
      const silent$ = cold('----a-----------');
      expectObservable(silent$.pipe(beating), '^--------!').toBe('---ha-h--', values);
      expectSubscriptions(silent$.subscriptions).toBe('^--------!');
    });
  });

  it('have no heartbeats while the reader is slow', () => {
    marbles(({ cold, hot, expectObservable }) => {
      const demand = { isOpen: true };
      hot('--c-o', { c: false, o: true }).subscribe((isOpen) => Object.assign(demand, { isOpen }));
      const beating = joinTexts(identity<string>, { heartbeatMs: 1, demand });
      expectObservable(cold('------|').pipe(beating)).toBe('-h--hh|', values);
    });
  });

  it('have a last one unless they end with an error', () => {
    marbles(({ cold, expectObservable }) => {
      const ended = joinTexts(identity<string>, { last: 'bc' });
      expectObservable(cold('-a|').pipe(ended)).toBe('-a(l|)', { a: 'a', l: 'bc' });
      expectObservable(cold('-a-(a|)').pipe(ended)).toBe('-a-(j|)', values);
      expectObservable(cold('-a#').pipe(ended)).toBe('-a#', values);
    });
  });

  it('end a source that emits all of them while it is subscribed to, when the reader leaves', () => {
    let made = 0;
    const text$ = range(1, 1_000).pipe(
      map(String),
      tap(() => (made += 1)),
    );
    const joined: string[] = [];
    text$.pipe(joinTexts(identity), take(2)).subscribe((text) => joined.push(text));
    expect(made).toBe(32);
    expect(joined.map((text) => text.length)).toEqual([23, 32]);
  });

  it('are dropped if the reader leaves before the turn ends', () => {
    marbles(({ cold, expectObservable }) => {
      const text$: Observable<string> = cold('-a--a');
      expectObservable(text$.pipe(joinTexts(identity), take(1))).toBe('-(a|)', values);
    });
  });
});
