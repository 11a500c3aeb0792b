import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { unpaired } from '../values/pairing.js';
import { withResults } from './suspend.js';
import { answer, appendsOf, exchange, someTurns, user } from './conversations.test-support.js';
import { isWaiting, lastTurnsFrom, turnStarts } from './transcript.js';

describe('turns', () => {
  it.each([
    ['nothing', [], []],
    ['one call', [user('a/input/0'), answer('a/1')], [0]],
    ['two inputs of one call', [user('a/input/0'), user('a/input/1'), answer('a/1')], [0]],
    [
      'what is said to a running call',
      [user('a/input/0'), ...exchange('a/1'), user('a/input/s0/0'), answer('a/2')],
      [0],
    ],
    [
      'a call that failed, and another',
      [user('a/input/0'), ...exchange('a/1'), user('b/input/0'), answer('b/1')],
      [0, 3],
    ],
    ['a call that failed at once', [user('a/input/0'), user('b/input/0'), answer('b/1')], [0, 1]],
    ['a call whose name begins alike', [user('a/input/0'), user('ab/input/0')], [0, 1]],
    ['other ids', [user('x'), ...exchange('y'), user('z'), answer('1'), user('2')], [0, 5]],
    ['an answer that comes first', [answer('0'), user('a/input/0'), answer('a/1')], [1]],
  ])('G2: %s', (_, messages, starts) => {
    expect(turnStarts(messages)).toEqual(starts);
  });

  it('I1: a cut parts no exchange, and leaves nothing that waits', () => {
    fc.assert(
      fc.property(someTurns, fc.integer({ min: 1, max: 9 }), (turns, keep) => {
        const messages = withResults(appendsOf(turns).flat());
        const from = lastTurnsFrom(messages, keep);
        expect(unpaired(messages.slice(from))).toBeUndefined();
        expect(messages.slice(0, from).some(isWaiting)).toBe(false);
        if (from > 0) expect(messages[from]?.role).toBe('user');
        const kept = turnStarts(messages).filter((start) => start >= from).length;
        const all = turnStarts(messages).length;
        if (messages.some(isWaiting)) expect(kept).toBeGreaterThanOrEqual(Math.min(keep, all));
        else expect(kept).toBe(Math.min(keep, all));
      }),
    );
  });
});
