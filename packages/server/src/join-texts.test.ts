import { describe, expect, it } from '@jest/globals';
import { marbles } from 'millrace/testing';
import { map, type Observable, range, take, tap } from 'rxjs';
import { heartbeat, joinTexts } from './join-texts.js';

const values = { j: 'abc', h: heartbeat, a: 'a' };

describe('the texts of a body', () => {
  it('are joined if they are emitted together, and the end follows them', () => {
    marbles(({ cold, expectObservable, expectSubscriptions }) => {
      const text$ = cold('-(abc)-a--(abc|)');
      expectObservable(text$.pipe(joinTexts())).toBe('-j-----a--(j|)', values);
      expectSubscriptions(text$.subscriptions).toBe('^---------!');
    });
  });

  it('come before an error', () => {
    marbles(({ cold, expectObservable }) => {
      const error = new Error('no');
      const text$ = cold('-a--(abc#)', undefined, error);
      expectObservable(text$.pipe(joinTexts())).toBe('-a--(j#)', values, error);
    });
  });

  it('have heartbeats among them, which end with them, or when the reader leaves', () => {
    marbles(({ cold, hot, expectObservable, expectSubscriptions }) => {
      const beat$ = hot('--h--h--h--h');
      const text$ = cold('---a--|');
      expectObservable(text$.pipe(joinTexts(beat$))).toBe('--ha-h|', values);
      const silent$ = cold('---a---------');
      expectObservable(silent$.pipe(joinTexts(beat$)), '^------!').toBe('--ha-h--', values);
      expectSubscriptions(silent$.subscriptions).toBe('^------!');
      expectSubscriptions(beat$.subscriptions).toBe(['^-----!', '^------!']);
    });
  });

  it('end a source that emits all of them while it is subscribed to, when the reader leaves', () => {
    let made = 0;
    const text$ = range(1, 1_000).pipe(
      map(String),
      tap(() => (made += 1)),
    );
    const joined: string[] = [];
    text$.pipe(joinTexts(), take(2)).subscribe((text) => joined.push(text));
    expect(made).toBe(32);
    expect(joined.map((text) => text.length)).toEqual([23, 32]);
  });

  it('are dropped if the reader leaves before the turn ends', () => {
    marbles(({ cold, expectObservable }) => {
      const text$: Observable<string> = cold('-a--a');
      expectObservable(text$.pipe(joinTexts(), take(1))).toBe('-(a|)', values);
    });
  });
});
