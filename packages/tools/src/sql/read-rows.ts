import { MillraceError, toolOutput, type ToolOutput } from 'millrace';
import { untrustedText } from 'millrace/values';
import type { Query, Row } from './database.js';

export interface RowLimits {
  readonly maxRows: number;
  /** Characters of a cell. */
  readonly maxCell: number;
  /** Characters of a result. */
  readonly maxLength: number;
}

/** A row as pairs of a column and its value: two columns may have the same name. */
type Cells = readonly (readonly [column: string, value: string | null])[];

export interface Rows {
  readonly rows: readonly Cells[];
  readonly isComplete: boolean;
}

/** Precedes the statement of the model; the server counts the characters of both. */
export const cursor = 'declare millrace_checked no scroll cursor for ';

/** Characters of a row that leave the server. */
const maxRowLength = 50_000;

/**
 * Runs a query through a cursor, which takes one SELECT or VALUES and nothing else, and fetches only the first rows.
 *
 * The server shortens each cell: a single one may have a gigabyte. For that, the statement becomes a subquery of
 * another one. It is declared alone before: so it is complete, and cannot close the parenthesis around it.
 */
export const readRows = async (query: Query, sql: string, limits: RowLimits): Promise<Rows> => {
  const { maxRows, maxCell } = limits;
  const statement = withoutSemicolon(sql);
  await query(cursor + statement);
  const cells = `select json_agg(json_build_array(key, left(value, ${maxCell + 1}))) from json_each_text(row_to_json(millrace_row))`;
  await query(
    `declare millrace_rows no scroll cursor for select left((${cells})::text, ${maxRowLength}) as cells from (${statement}\n) as millrace_row`,
  );
  const { rows } = await query(`fetch ${maxRows + 1} from millrace_rows`);
  return { rows: rows.slice(0, maxRows).map(cellsOf), isComplete: rows.length <= maxRows };
};

/** Models end a statement by a semicolon. The pattern is linear: it goes back from the end. */
export const withoutSemicolon = (sql: string): string => /^.*[^\s;]/su.exec(sql)?.[0] ?? '';

const cellsOf = ({ cells }: Row): Cells => {
  if (cells === null) return [];
  const parsed: unknown = typeof cells === 'string' ? parse(cells) : undefined;
  if (Array.isArray(parsed)) return parsed.filter(isPair);
  throw new MillraceError(
    'invalidRequest',
    `A row of the result has more than ${maxRowLength} characters. Select fewer columns.`,
  );
};

const parse = (json: string): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
};

const isPair = (value: unknown): value is Cells[number] =>
  Array.isArray(value) && typeof value[0] === 'string';

// ---------------------------------------------------------------- output

/** Shows rows as lines of cells, as many as fit. */
export const rowsOutput = ({ rows, isComplete }: Rows, limits: RowLimits): ToolOutput => {
  const [first] = rows;
  if (first === undefined) {
    return toolOutput({ content: '(No rows.)', details: { columns: [], rows: [], isComplete } });
  }
  const columns = first.map(([column]) => column);
  const lines = [columns.map(shown).join(' | ').slice(0, limits.maxLength)];
  const room = { left: limits.maxLength - length(lines[0]) };
  const fitting = rows.filter((row) => {
    const line = row.map(([, value]) => cell(value, limits.maxCell)).join(' | ');
    room.left -= length(line);
    if (room.left >= 0) lines.push(line);
    return room.left >= 0;
  });
  const isWhole = isComplete && fitting.length === rows.length;
  const count = `${fitting.length} ${fitting.length === 1 ? 'row' : 'rows'}`;
  const note = isWhole
    ? `[${count}.]`
    : `[Only the first ${count}. Aggregate, select fewer columns, or use WHERE, LIMIT and OFFSET.]`;
  return toolOutput({
    content: [...lines, note].join('\n'),
    details: {
      columns,
      rows: fitting.map((row) => row.map(([, value]) => value)),
      isComplete: isWhole,
    },
  });
};

const length = (line: string | undefined): number => (line ?? '').length + 1;

const cell = (value: string | null, maxCell: number): string => {
  if (value === null) return 'NULL';
  return value.length > maxCell ? `${shown(value.slice(0, maxCell))}…` : shown(value);
};

/** One cleaned line, in which `|` separates cells only. */
const shown = (text: string): string =>
  untrustedText(text.replaceAll('\r', '\\r')).replaceAll('|', '\\|').replaceAll('\n', '\\n');
