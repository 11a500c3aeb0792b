import type { CallSummary } from 'millrace/journal';
import { assistantName } from '../create-assistant.js';
import { milliseconds } from '../presentation/milliseconds.js';
import { oneLine } from '../presentation/shorten.js';
import type { Theme } from '../presentation/theme.js';
import { statusColor, statusOf } from './describe-status.js';
import { shortId } from './run-id.js';

/** Formats runs as a table, one line each, at `now` (milliseconds since the epoch). Omits an empty session column. */
export const runsTable = (runs: readonly CallSummary[], theme: Theme, now: number): string => {
  const ids = runs.map(({ callId }) => callId);
  const rows = runs.map((run) => rowOf(run, ids, now));
  const wide = columns.map((name) =>
    Math.max(name.length, ...rows.map((row) => Math.min(row[name].length, widest))),
  );
  const isThere = columns.map((name) => name !== 'session' || rows.some((row) => row[name] !== ''));
  const line = (row: Row, paint: (name: Column, text: string) => string): string => {
    const cells = columns.flatMap((name, index) =>
      isThere[index] === true ? [paint(name, fitted(row[name], wide[index] ?? 0, theme))] : [],
    );
    const used = wide.reduce((sum, one, index) => sum + (isThere[index] === true ? one + 2 : 0), 0);
    return [...cells, oneLine(row.question, Math.max(theme.width - used, 20), theme)].join('  ');
  };
  const head = line(headings, (_name, text) => text);
  const body = rows.map((row, index) =>
    line(row, (name, text) => {
      const run = runs[index];
      return name === 'status' && run !== undefined
        ? statusColor(statusOf(run), theme.colors)(text)
        : text;
    }),
  );
  return [theme.colors.dim(head), ...body].map((text) => `${text.trimEnd()}\n`).join('');
};

type Column = 'id' | 'when' | 'status' | 'took' | 'session';

const columns: readonly Column[] = ['id', 'when', 'status', 'took', 'session'];

type Row = Readonly<Record<Column | 'question', string>>;

const headings: Row = {
  id: 'id',
  when: 'when',
  status: 'status',
  took: 'took',
  session: 'session',
  question: 'question',
};

/** Maximum number of characters in a cell. */
const widest = 24;

const rowOf = (run: CallSummary, ids: readonly string[], now: number): Row => {
  const { callId, createdAt, updatedAt } = run;
  const status = statusOf(run);
  const dated = {
    id: shortId(callId, ids),
    when: ago(now - createdAt),
    status,
    took: milliseconds((status === 'running' ? now : updatedAt) - createdAt),
  };
  if (run.status === 'unreadable') return { ...dated, session: '', question: run.why };
  const { agent, sessionId, question } = run;
  const foreign = agent === assistantName ? [] : [agent];
  return {
    ...dated,
    session: [...foreign, ...(sessionId === undefined ? [] : [sessionId])].join('/'),
    question,
  };
};

const fitted = (text: string, width: number, theme: Theme): string =>
  oneLine(text, width, theme).padEnd(width);

/** Units, in milliseconds. */
const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** Formats an age: `3 min ago`. */
const ago = (ms: number): string => {
  const [name, size] = units.find(([, unit]) => ms >= unit) ?? [];
  return name === undefined ? 'now' : `${Math.floor(ms / size)} ${name} ago`;
};
