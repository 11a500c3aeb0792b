import type { CallSummary } from 'millrace/journal';
import { assistantName } from '../create-assistant.js';
import { milliseconds } from '../presentation/milliseconds.js';
import { oneLine } from '../presentation/shorten.js';
import type { Theme } from '../presentation/theme.js';
import { columnsOf } from '../presentation/columns.js';
import { statusColor, statusOf } from './describe-status.js';
import { shortId } from './run-id.js';

/**
 * Formats runs as a table, one line each, at `now` (milliseconds since the epoch). Omits columns that are empty, and in a
 * narrow terminal the columns that leave no room for the question.
 */
export const runsTable = (runs: readonly CallSummary[], theme: Theme, now: number): string => {
  const ids = runs.map(({ callId }) => callId);
  const rows = runs.map((run) => rowOf(run, ids, now));
  const shown = fittingColumns(rows, theme);
  const room = theme.width - usedBy(shown);
  const line = (row: Row, paint: (name: Column, text: string) => string): string =>
    [
      ...shown.map(({ name, width }) => paint(name, fitted(row[name], width, theme))),
      oneLine(row.question, Math.max(room, 8), theme),
    ].join('  ');
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

interface Shown {
  readonly name: Column;
  readonly width: number;
}

/** The columns before the question, with their widths. */
const fittingColumns = (
  rows: readonly Row[],
  { width }: Pick<Theme, 'width'>,
): readonly Shown[] => {
  const all = columns
    .filter((name) => rows.some((row) => row[name] !== '') || !sparse.includes(name))
    .map((name) => ({
      name,
      width: Math.min(Math.max(name.length, ...rows.map((row) => columnsOf(row[name]))), widest),
    }));
  return leastImportant.reduce<readonly Shown[]>(
    (shown, name) =>
      width - usedBy(shown) < leastQuestion ? shown.filter((it) => it.name !== name) : shown,
    all,
  );
};

const usedBy = (shown: readonly Shown[]): number =>
  shown.reduce((sum, { width }) => sum + width + 2, 0);

const columns = ['id', 'when', 'status', 'took', 'agent', 'session'] as const;

type Column = (typeof columns)[number];

/** Columns that many runs have nothing for. */
const sparse: readonly Column[] = ['agent', 'session'];

/** In this order, columns make room for the question. */
const leastImportant: readonly Column[] = ['took', 'agent', 'session', 'when', 'status'];

/** The columns that a question needs at least. */
const leastQuestion = 16;

type Row = Readonly<Record<Column | 'question', string>>;

const headings: Row = {
  id: 'id',
  when: 'when',
  status: 'status',
  took: 'took',
  agent: 'agent',
  session: 'session',
  question: 'question',
};

/** Maximum width of a cell, in columns. */
const widest = 24;

const rowOf = (run: CallSummary, ids: readonly string[], now: number): Row => {
  const { callId, createdAt, updatedAt } = run;
  const status = statusOf(run);
  const dated = {
    id: shortId(callId, ids),
    // As the store orders them.
    when: ago(now - updatedAt),
    status,
    took: milliseconds((status === 'running' ? now : updatedAt) - createdAt),
  };
  if (run.status === 'unreadable') return { ...dated, agent: '', session: '', question: run.why };
  const { agent, sessionId = '', question } = run;
  return {
    ...dated,
    agent: agent === assistantName ? '' : agent,
    session: sessionId,
    question: question === '' ? noText : question,
  };
};

/** Instead of a question without text. */
const noText = '(no text: a tool result or a file)';

const fitted = (text: string, width: number, theme: Theme): string => {
  const shown = oneLine(text, width, theme);
  return shown + ' '.repeat(Math.max(width - columnsOf(shown), 0));
};

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
