import { describe, expect, it, jest } from '@jest/globals';
import { LazyAbort } from './lazy-abort.js';

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
