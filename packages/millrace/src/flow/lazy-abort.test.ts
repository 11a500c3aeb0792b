import { describe, expect, it, jest } from '@jest/globals';
import { NEVER, of, range, take, tap, throwError } from 'rxjs';
import { abortsUnlessComplete, LazyAbort } from './lazy-abort.js';

describe('LazyAbort', () => {
  it('gives one signal, which aborts immediately', () => {
    const abort = new LazyAbort();
    const heard = jest.fn();
    abort.signal.addEventListener('abort', heard);
    expect(abort.signal.aborted).toBe(false);
    abort.abort();
    abort.abort();
    expect(abort.signal.aborted).toBe(true);
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('gives a signal that has aborted to a late caller', () => {
    const abort = new LazyAbort();
    abort.abort();
    expect(abort.signal.aborted).toBe(true);
  });
});

describe('abortsUnlessComplete', () => {
  it.each([
    ['completes', of(1), false],
    ['errors', throwError(() => 'x'), true],
    ['is left', NEVER, true],
  ])('of a source that %s', (_what, source$, aborts) => {
    const abort = new LazyAbort();
    const running = source$.pipe(abortsUnlessComplete(abort)).subscribe({ error: () => undefined });
    running.unsubscribe();
    expect(abort.signal.aborted).toBe(aborts);
  });

  it('aborts, and stops a source without an end, while that emits synchronously', () => {
    const abort = new LazyAbort();
    const seen: unknown[] = [];
    range(0, Infinity)
      .pipe(
        tap((it) => seen.push([it, abort.signal.aborted])),
        abortsUnlessComplete(abort),
        take(2),
      )
      .subscribe();
    expect(seen).toEqual([
      [0, false],
      [1, false],
    ]);
    expect(abort.signal.aborted).toBe(true);
  });
});
