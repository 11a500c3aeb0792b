import { describe, expect, it, jest } from '@jest/globals';
import { createLazyAbort } from './lazy-abort.js';

describe('createLazyAbort', () => {
  it('gives one signal, which aborts at once', () => {
    const abort = createLazyAbort();
    const heard = jest.fn();
    abort.signal.addEventListener('abort', heard);
    expect(abort.signal.aborted).toBe(false);
    abort.abort();
    abort.abort();
    expect(abort.signal.aborted).toBe(true);
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('gives a signal that has aborted to whoever asks too late', () => {
    const abort = createLazyAbort();
    abort.abort();
    expect(abort.signal.aborted).toBe(true);
  });
});
