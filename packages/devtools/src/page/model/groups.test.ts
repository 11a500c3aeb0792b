import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { CallEntry } from '../protocol.js';
import { inGroups, rowsBetween, rowsOfCalls, timeOfDay } from './groups.js';

const callOf = (id: string, startedAt: number, sessionId?: string): CallEntry => ({
  ...{ id, startedAt, agent: 'Guide', input: '?', answer: '', status: 'done', tokens: 0 },
  ...{ isOpen: false, isInspected: false },
  ...(sessionId !== undefined && { sessionId, userId: 'ann' }),
});

const textOf = (calls: readonly CallEntry[]): readonly string[] =>
  rowsOfCalls(calls).map((row) =>
    row.type === 'group'
      ? `${row.sessionId} ${row.userId ?? ''} ${row.count}`
      : [row.call.id, ...row.labels].join(' '),
  );

describe('the list of calls', () => {
  it('has the calls of a conversation together, with a row for it', () => {
    const calls = [
      ...[callOf('a', 1, 's'), callOf('b', 2), callOf('c', 3, 's')],
      ...[callOf('d', 4, 't'), callOf('e', 2, 'u')],
    ];
    expect(textOf(inGroups(calls))).toEqual([
      ...['d session t ann', 's ann 2', 'c', 'a', 'b', 'e session u ann'],
    ]);
  });

  it('has each call once, and the rows of any window, in order and without gaps', () => {
    const lists = fc.array(fc.tuple(fc.nat(9), fc.option(fc.constantFrom('s', 't', 'u'))), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(lists, fc.nat(900), fc.nat(900), (given, from, size) => {
        const calls = given.map(([at, session], index) =>
          callOf(`c${index}`, at, session ?? undefined),
        );
        const sorted = inGroups(calls);
        expect(new Set(sorted)).toEqual(new Set(calls));
        const rows = rowsOfCalls(sorted);
        rows.forEach((row, index) => {
          const before = rows[index - 1];
          expect(row.top).toBe(before === undefined ? 0 : before.top + before.height);
        });
        const groups = rows.flatMap((row) => (row.type === 'group' ? [row.sessionId] : []));
        expect(new Set(groups).size).toBe(groups.length);
        expect(rowsBetween(rows, from, from + size)).toEqual(
          rows.filter(({ top, height }) => top + height > from && top < from + size),
        );
      }),
    );
  });

  it('has the time of day, and the date of another day', () => {
    const at = new Date(2026, 10, 30, 9, 5, 7).getTime();
    expect(timeOfDay(at, at + 60_000)).toBe('09:05:07');
    expect(timeOfDay(at, at + 86_400_000)).toBe('30 Nov 2026, 09:05:07');
  });
});
