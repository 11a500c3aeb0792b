import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { append, compact, startRun } from '../run.js';
import { unpaired } from '../values/pairing.js';
import { withResults } from './suspend.js';
import {
  answer,
  appendsOf,
  exchange,
  idsOf,
  someTurns,
  user,
} from './conversations.test-support.js';
import { compactable } from './summarise.js';
import { summaryMessage } from './summarise.js';
import { isWaiting } from './transcript.js';

const call = { callId: 'z' };
const history = ['a', 'b', 'c'].flatMap((it) => [
  user(`${it}/input/0`),
  ...exchange(`${it}/1`),
  answer(`${it}/2`),
]);

describe('compactable', () => {
  it('G2: before the first request, the older turns are old', () => {
    const old = compactable(startRun(history, [user('z/input/0')]), call, 2);
    expect(idsOf(old.messages)).toEqual(['a/input/0', 'a/1', 'a/1/results', 'a/2']);
    expect(old).toMatchObject({ upTo: 4, kept: [], recap: undefined });
  });

  it('G2: later, the tools of the call count as turns, and what it was asked stays', () => {
    const begun = append(
      startRun(history.slice(0, 4), [user('z/input/0')]),
      ...exchange('z/1'),
      user('z/input/s0/0'),
      ...exchange('z/2'),
      ...exchange('z/3'),
    );
    const run = { ...begun, stored: begun.messages.length };
    const old = compactable(run, call, 2);
    expect(idsOf(old.messages)).toEqual([...idsOf(history.slice(0, 4)), 'z/1', 'z/1/results']);
    expect(idsOf(old.kept)).toEqual(['z/input/0', 'z/input/s0/0']);
    const shorter = compact(run, old.upTo, summaryMessage('z/recap/4', 'Notes.', 6), ...old.kept);
    const longer = append(shorter, ...exchange('z/4'));
    const again = compactable({ ...longer, stored: longer.messages.length }, call, 2);
    expect(again.recap?.id).toBe('z/recap/4');
    expect(idsOf(again.messages)).toEqual(['z/2', 'z/2/results']);
    expect(idsOf(again.shown)).toEqual(['z/input/0', 'z/input/s0/0', 'z/2', 'z/2/results']);
  });

  it('I8: what memory does not have is not old', () => {
    const run = append(startRun([], [user('z/input/0')]), ...exchange('z/1'), ...exchange('z/2'));
    expect(compactable(run, call, 1)).toMatchObject({ messages: [], upTo: 0 });
    expect(idsOf(compactable({ ...run, stored: 3 }, call, 1).messages)).toEqual([
      'z/1',
      'z/1/results',
    ]);
    expect(compactable({ ...run, stored: 2 }, call, 1).messages).toEqual([]);
  });

  it('I15: a call that only brings results keeps what was asked last', () => {
    const run = append(startRun(history, []), ...exchange('z/1'), ...exchange('z/2'));
    const old = compactable({ ...run, stored: run.messages.length }, call, 1);
    expect(idsOf(old.kept)).toEqual(['c/input/0']);
    expect(idsOf(old.messages)).toContain('c/1');
  });

  it('I1, I15: a conversation that the call was asked with stays whole', () => {
    const asked = [
      user('z/input/0'),
      ...exchange('z/input/1'),
      answer('z/input/3'),
      user('z/input/4'),
    ];
    const run = append(startRun(history, asked), ...exchange('z/1'), ...exchange('z/2'));
    const old = compactable({ ...run, stored: run.messages.length }, call, 1);
    expect(idsOf(old.kept)).toEqual(idsOf(asked));
    expect(idsOf(old.messages)).toEqual([...idsOf(history), 'z/1', 'z/1/results']);
    expect(compactable({ ...run, stored: run.messages.length }, call, 3).upTo).toBe(8);
  });

  it('I1, I15: for any run, pairs stay whole, the task and what waits stay, and the last turns', () => {
    const tail = fc.array(fc.boolean(), { maxLength: 5 });
    fc.assert(
      fc.property(
        someTurns,
        tail,
        fc.integer({ min: 1, max: 4 }),
        fc.nat(60),
        (turns, steps, keep, stored) => {
          const begun = startRun(withResults(appendsOf(turns).flat()), [user('z/input/0')]);
          const run = append(
            begun,
            ...steps.flatMap((steered, at) => [
              ...exchange(`z/${at + 1}`, 2),
              ...(steered ? [user(`z/input/s${at}/0`)] : []),
            ]),
          );
          const done = {
            ...run,
            stored: Math.max(begun.stored, Math.min(stored, run.messages.length)),
          };
          const old = compactable(done, call, keep);
          expect(old.upTo).toBeLessThanOrEqual(done.stored);
          expect(unpaired(old.messages)).toBeUndefined();
          expect(old.messages.some(isWaiting)).toBe(false);
          const shorter = compact(
            done,
            old.upTo,
            summaryMessage('z/recap/9', 'Notes.', 1),
            ...old.kept,
          );
          expect(unpaired(shorter.messages)).toBeUndefined();
          const isTask = (id: string): boolean => id.startsWith('z/input/');
          expect(idsOf(shorter.messages).filter(isTask)).toEqual(
            idsOf(run.messages).filter(isTask),
          );
          const rest = run.messages.slice(old.upTo);
          expect(shorter.messages.slice(1 + old.kept.length)).toEqual(rest);
          if (old.messages.length > 0) {
            const units = rest.filter(({ id, role }) =>
              id.startsWith('z/') ? role === 'assistant' : role === 'user',
            );
            expect(units.length).toBeGreaterThanOrEqual(keep);
          }
        },
      ),
    );
  });
});
