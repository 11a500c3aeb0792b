import { describe, expect, it } from '@jest/globals';
import { createHolds, type HoldableEvent } from './holds.js';
import { eventOf } from './page/model/runs.test-support.js';

const halt = { now: () => 0, stop: () => () => undefined, mark: () => undefined };

const event = eventOf('preActing', 0, {
  toolCall: { type: 'tool_call', id: 'w', name: 'weather', input: {} },
}) as unknown as HoldableEvent;

/** The holds of a process that has held one event, which is still held. */
const holding = () => {
  const holds = createHolds(
    () => 0,
    () => undefined,
  );
  const values: HoldableEvent[] = [];
  const held = holds.hold$(event, halt).subscribe((value) => values.push(value));
  return { holds, values, held };
};

describe('a hold', () => {
  it('has an id that no other process has: a page may still show one of the process before', () => {
    const [before, after] = [holding(), holding()];
    const id = before.holds.current[0]?.id ?? '';
    expect(id).not.toBe('');
    expect(() => after.holds.act(id, { action: 'continue', event: { input: 1 } })).toThrow(
      'This call is no longer held.',
    );
    expect(after.values).toEqual([]);
    before.holds.act(id, { action: 'continue' });
    expect(before.values).toEqual([event]);
    for (const { held } of [before, after]) held.unsubscribe();
    expect(after.holds.current).toEqual([]);
  });
});
