import { toolOutput, type ToolOutput } from 'millrace';
import { isRecord, untrustedText } from 'millrace/values';
import type { Query, Row } from './database.js';

export interface Table {
  readonly schema: string;
  readonly name: string;
  readonly kind: string;
  readonly comment: string;
  readonly columns: readonly Column[];
  /** As in `CREATE TABLE`: `PRIMARY KEY (id)`, `FOREIGN KEY (mill) REFERENCES mills(id)`. */
  readonly keys: readonly string[];
}

interface Column {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly comment: string;
}

const maxTables = 500;

/** The tables and views that the user may read: $1 is a JSON array of schemas or null, $2 a part of a name or null. */
const catalog = `
select n.nspname as schema, c.relname as name, c.relkind::text as kind, left(obj_description(c.oid, 'pg_class'), 300) as comment,
  (select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
      'isRequired', a.attnotnull, 'comment', left(col_description(c.oid, a.attnum), 300)) order by a.attnum)
    from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum between 1 and 300 and not a.attisdropped)::text as columns,
  (select json_agg(left(pg_get_constraintdef(k.oid), 300) order by k.contype desc, k.conname)
    from pg_catalog.pg_constraint k where k.conrelid = c.oid and k.contype in ('p', 'f', 'u'))::text as keys
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
  and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  and ($1::text is null or n.nspname in (select json_array_elements_text($1::json)))
  and ($2::text is null or strpos(lower(n.nspname || '.' || c.relname), lower($2)) > 0)
  and has_any_column_privilege(c.oid, 'SELECT')
order by n.nspname, c.relname limit ${maxTables + 1}`;

export const readTables = async (
  query: Query,
  schemas: readonly string[] | undefined,
  part: string | undefined,
): Promise<readonly Table[]> => {
  const given = schemas === undefined ? null : JSON.stringify(schemas);
  const { rows } = await query(catalog, [given, part ?? null]);
  return rows.map(tableOf);
};

const tableOf = (row: Row): Table => ({
  schema: textIn(row, 'schema'),
  name: textIn(row, 'name'),
  kind: kinds[textIn(row, 'kind')] ?? 'table',
  comment: textIn(row, 'comment'),
  columns: listIn(row, 'columns').filter(isRecord).map(columnOf),
  keys: listIn(row, 'keys').map(String),
});

const columnOf = (column: Row): Column => ({
  name: textIn(column, 'name'),
  type: textIn(column, 'type'),
  isRequired: column['isRequired'] === true,
  comment: textIn(column, 'comment'),
});

const textIn = (row: Row, name: string): string => {
  const value = row[name];
  return typeof value === 'string' ? value : '';
};

const listIn = (row: Row, name: string): readonly unknown[] => {
  const value: unknown = JSON.parse(textIn(row, name) || '[]');
  return Array.isArray(value) ? value : [];
};

const kinds: Readonly<Partial<Record<string, string>>> = {
  v: 'view',
  m: 'materialized view',
  f: 'foreign table',
};

// ---------------------------------------------------------------- output

/** Describes as many tables as fit, and names the others. */
export const schemaOutput = (tables: readonly Table[], maxLength: number): ToolOutput => {
  if (tables.length === 0) return toolOutput({ content: '(No tables.)', details: { tables } });
  const room = { left: maxLength };
  const fitting = tables.slice(0, maxTables).filter((table, index) => {
    room.left -= described(table).length + 2;
    return room.left >= 0 || index === 0;
  });
  const others = tables.slice(fitting.length).map(nameOf).join(', ');
  const more = others.length > 1_000 ? `${others.slice(0, 1_000)}…` : others;
  const parts = fitting.map((table) => described(table).slice(0, maxLength));
  return toolOutput({
    content: [
      ...parts,
      ...(others === '' ? [] : [`[More tables; filter by a part of their names: ${more}]`]),
    ].join('\n\n'),
    details: { tables: fitting, isComplete: fitting.length === tables.length },
  });
};

const nameOf = ({ schema, name }: Table): string =>
  schema === 'public' ? quoted(name) : `${quoted(schema)}.${quoted(name)}`;

/** As it must be written in a statement. */
const quoted = (name: string): string =>
  /^[a-z_][a-z0-9_]*$/u.test(name) ? name : `"${name.replaceAll('"', '""')}"`;

const described = (table: Table): string => {
  const { kind, comment, columns, keys } = table;
  return [
    `${kind} ${nameOf(table)}${noted(comment)}`,
    ...columns.map(
      ({ name, type, isRequired, comment: note }) =>
        `  ${quoted(name)} ${type}${isRequired ? ' not null' : ''}${noted(note)}`,
    ),
    ...keys.map((key) => `  ${key}`),
  ].join('\n');
};

const noted = (comment: string): string =>
  comment === '' ? '' : ` -- ${untrustedText(comment.replace(/\s+/gu, ' '), { labels: false })}`;
