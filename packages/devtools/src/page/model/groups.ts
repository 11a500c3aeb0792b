// The list of calls: the calls of a conversation together, the newest conversation first.
import type { CallEntry } from '../protocol.js';

/** Sorts calls by the newest call of their conversation, then the newest first. */
export const inGroups = (calls: Iterable<CallEntry>): readonly CallEntry[] => {
  const list = [...calls];
  const newest = new Map<string, number>();
  for (const call of list) {
    const key = groupOf(call);
    newest.set(key, Math.max(newest.get(key) ?? 0, call.startedAt));
  }
  return list.sort((a, b) => {
    const [own, other] = [groupOf(a), groupOf(b)];
    if (own === other) return b.startedAt - a.startedAt;
    return (newest.get(other) ?? 0) - (newest.get(own) ?? 0) || (own < other ? -1 : 1);
  });
};

const groupOf = ({ id, sessionId }: CallEntry): string =>
  sessionId === undefined ? `call ${id}` : `session ${sessionId}`;

/** A row of the list. `top` and `height` are in pixels. */
export type ListRow = { readonly top: number; readonly height: number } & (
  | {
      readonly type: 'group';
      readonly sessionId: string;
      readonly userId: string | undefined;
      readonly count: number;
    }
  /** `labels` are what no row above it says: its session and its user. */
  | { readonly type: 'call'; readonly call: CallEntry; readonly labels: readonly string[] }
);

const heights = { group: 30, call: 58, labelled: 76 };

const labelsOf = ({ sessionId, userId }: CallEntry): readonly string[] => [
  ...(sessionId === undefined ? [] : [`session ${sessionId}`]),
  ...(userId === undefined ? [] : [userId]),
];

/** The rows of sorted calls: a conversation of several calls has a row of its own. */
export const rowsOfCalls = (calls: readonly CallEntry[]): readonly ListRow[] => {
  const counts = new Map<string, number>();
  for (const call of calls) counts.set(groupOf(call), (counts.get(groupOf(call)) ?? 0) + 1);
  const rows: ListRow[] = [];
  let top = 0;
  const add = (height: number, row: Content): void => {
    rows.push({ ...row, top, height });
    top += height;
  };
  let before: string | undefined;
  for (const call of calls) {
    const { sessionId, userId } = call;
    const group = groupOf(call);
    const count = counts.get(group) ?? 1;
    const isGrouped = sessionId !== undefined && count > 1;
    if (isGrouped && group !== before)
      add(heights.group, { type: 'group', sessionId, userId, count });
    before = group;
    const labels = isGrouped ? [] : labelsOf(call);
    add(labels.length > 0 ? heights.labelled : heights.call, { type: 'call', call, labels });
  }
  return rows;
};

type Content = ListRow extends infer Row
  ? Row extends ListRow
    ? Omit<Row, 'top' | 'height'>
    : never
  : never;

/** The rows between two pixels, by bisection. */
export const rowsBetween = (
  rows: readonly ListRow[],
  from: number,
  to: number,
): readonly ListRow[] => {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const row = rows[middle];
    if (row !== undefined && row.top + row.height <= from) low = middle + 1;
    else high = middle;
  }
  const shown: ListRow[] = [];
  for (let index = low; index < rows.length; index += 1) {
    const row = rows[index];
    if (row === undefined || row.top >= to) break;
    shown.push(row);
  }
  return shown;
};

/** The time of day of a call, and its date if that is another day than `now`. */
export const timeOfDay = (at: number, now: number): string => {
  const [date, today] = [new Date(at), new Date(now)];
  const time = date.toLocaleTimeString('en-GB');
  return date.toDateString() === today.toDateString()
    ? time
    : `${date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric' })}, ${time}`;
};
