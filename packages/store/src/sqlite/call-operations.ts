import type { CallQuery, RecordRange, StoredCall, StoredRecord } from 'millrace/journal';
import type { CallClaim, CallPage, PageEnd, RecordBatch, RemovedKey } from '../sql/call-table.js';
import { numberIn, recordOf, textIn, toSqlText } from '../sql/text.js';
import type { Database } from './database.js';
import { brief, read, write } from './operation.js';
import type { SqlRow } from './sqlite-driver.js';

/** The most records in a page, and the length of their texts in bytes after which a page ends. */
const [pageRecords, pageBytes] = [500, 1_000_000];

const claim = (
  database: Database,
  { key, callId, owner, leaseMs, silent }: CallClaim,
  now: number,
): number | undefined => {
  const [call] = database.all(
    `insert into calls (key, id, owner, expires_at, created_at, updated_at)
    values (?1, ?2, ?3, ?4, ?5, ?5)
    on conflict (key) do update set owner = excluded.owner, expires_at = excluded.expires_at
    where owner is null or calls.expires_at <= ?5 or calls.owner || ' ' || calls.expires_at = ?6
    returning last_position`,
    key,
    toSqlText(callId),
    owner,
    now + leaseMs,
    now,
    silent ?? null,
  );
  return call && numberIn(call, 'last_position');
};

const removeAll = (
  database: Database,
  keys: readonly string[],
  now: number,
): readonly RemovedKey[] => {
  const named = 'key in (select value from json_each(?1))';
  const found = database.all(
    `select key, session, owner is not null and expires_at > ?2 as is_open from calls where ${named}`,
    JSON.stringify(keys),
    now,
  );
  database.run(
    `delete from calls where ${named} and (owner is null or expires_at <= ?2)`,
    JSON.stringify(keys),
    now,
  );
  const rows = new Map(found.map((row) => [row['key'], row]));
  return keys.flatMap((key): readonly RemovedKey[] => {
    const row = rows.get(key);
    if (row === undefined) return [{ key }];
    if (row['is_open'] === 1) return [];
    return [{ key, ...(row['session'] !== null && { sessionId: textIn(row, 'session') }) }];
  });
};

const append = (database: Database, batch: RecordBatch, now: number): boolean => {
  const { key, owner, records, sessionId } = batch;
  const [call] = database.all(
    `update calls set
      last_position = last_position + ?1,
      created_at = iif(last_position = 0, ?2, created_at),
      updated_at = ?2,
      session = coalesce(session, ?3),
      has_ended = ?4
    where key = ?5 and owner = ?6
    returning place, last_position`,
    records.length,
    now,
    sessionId === undefined ? null : toSqlText(sessionId),
    records.at(-1)?.ends === true ? 1 : 0,
    key,
    owner,
  );
  if (call === undefined) return false;
  const before = numberIn(call, 'last_position') - records.length;
  records.forEach(({ kind, name, seq, text }, index) =>
    database.run(
      'insert into records (call, position, kind, name, seq, text) values (?, ?, ?, ?, ?, ?)',
      numberIn(call, 'place'),
      before + index + 1,
      kind,
      toSqlText(name),
      seq,
      toSqlText(text),
    ),
  );
  return true;
};

const recordsOf = (
  database: Database,
  key: string,
  { kind, after = 0, afterSeq = -1 }: RecordRange,
): readonly StoredRecord[] => {
  const which = `from records
    where call = (select place from calls where key = ?1)
      and position > ?2 and seq > ?3 and (?4 is null or kind = ?4)
    order by position`;
  const range = [key, after, afterSeq, kind ?? null] as const;
  // SQLite knows the length of text without reading it.
  const sizes = database.all(
    `select octet_length(text) as size ${which} limit ?5`,
    ...range,
    pageRecords,
  );
  let bytes = 0;
  const count = sizes.findIndex((row) => (bytes += numberIn(row, 'size')) >= pageBytes) + 1;
  return database
    .all(
      `select position, kind, name, seq, text ${which} limit ?5`,
      ...range,
      count === 0 ? sizes.length : count,
    )
    .map(recordOf);
};

/**
 * The statement for a page of the list of calls, after a call. Skips calls without records that no process holds: their writer
 * has crashed.
 */
const pageStatement = (order: string, size: number, which: string): string => `
  select
    call.*, call.owner is not null and call.expires_at > ?1 as is_open,
    first.kind as first_kind, first.name as first_name, first.seq as first_seq, first.text as first_text,
    last.kind as last_kind, last.name as last_name, last.seq as last_seq, last.text as last_text
  from (
    select * from calls
    where (last_position > 0 or expires_at > ?1) and ${which}
    order by ${order} limit ${size}
  ) as call
  left join records as first on first.call = call.place and first.position = 1
  left join records as last on last.call = call.place and last.position = call.last_position
  order by ${order}`;

const byTime = '(updated_at, place) < (?2, ?3)';
// A session usually needs only its latest calls.
const bySession = 'session = ?4 and place < ?3 and updated_at <= ?2';
const statements = {
  all: pageStatement('updated_at desc, place desc', 50, byTime),
  unfinished: pageStatement('updated_at desc, place desc', 50, `has_ended = 0 and ${byTime}`),
  ofSession: pageStatement('place desc', 5, bySession),
  unfinishedOfSession: pageStatement('place desc', 5, `has_ended = 0 and ${bySession}`),
};

const list = (
  database: Database,
  { sessionId, isUnfinished, writtenUntil = Number.MAX_SAFE_INTEGER }: CallQuery,
  after: PageEnd | undefined,
  now: number,
): CallPage & { readonly owners: readonly string[] } => {
  const start = after ?? [writtenUntil, Number.MAX_SAFE_INTEGER];
  const isOfSession = sessionId !== undefined;
  const rows = isOfSession
    ? database.all(
        isUnfinished ? statements.unfinishedOfSession : statements.ofSession,
        now,
        writtenUntil,
        start[1] ?? null,
        toSqlText(sessionId),
      )
    : database.all(isUnfinished ? statements.unfinished : statements.all, now, ...start);
  const last = rows.at(-1);
  const end = last && [numberIn(last, 'updated_at'), numberIn(last, 'place')];
  const owners = rows.map((row) => textIn(row, 'owner'));
  return { calls: rows.map(callOf), owners, end };
};

const callOf = (row: SqlRow): StoredCall => {
  const last = numberIn(row, 'last_position');
  const part = (name: string, position: number) =>
    row[`${name}_kind`] !== null && {
      [name]: recordOf({
        position,
        kind: row[`${name}_kind`],
        name: row[`${name}_name`],
        seq: row[`${name}_seq`],
        text: row[`${name}_text`],
      }),
    };
  return {
    callId: textIn(row, 'id'),
    createdAt: numberIn(row, 'created_at'),
    updatedAt: numberIn(row, 'updated_at'),
    isOpen: row['is_open'] === 1,
    place: numberIn(row, 'place'),
    ...part('first', 1),
    ...part('last', last),
  };
};

/** The operations of a `CallTable`. Times are in milliseconds since the epoch, by the scheduler of the store. */
export const callOperations = {
  claimCall: brief(claim),
  callHolder: read((database, key: string) => {
    const sql = `select owner || ' ' || expires_at as sign from calls where key = ? and owner is not null`;
    const row = database.get(sql, key);
    return row && textIn(row, 'sign');
  }),
  renewCall: brief(
    (database, key: string, owner: string, expiresAt: number) =>
      database.run(
        'update calls set expires_at = ? where key = ? and owner = ?',
        expiresAt,
        key,
        owner,
      ) > 0,
  ),
  releaseCall: brief((database, key: string, owner: string) =>
    database.run(
      'update calls set owner = null, expires_at = null where key = ? and owner = ?',
      key,
      owner,
    ),
  ),
  releaseCalls: brief((database, keys: readonly string[]) =>
    database.run(
      'update calls set owner = null, expires_at = null where key in (select value from json_each(?))',
      JSON.stringify(keys),
    ),
  ),
  appendSteps: write(append),
  appendEvents: brief(append),
  readRecords: read(recordsOf),
  listCalls: read(list),
  removeCall: write((database, key: string, owner: string) =>
    database.run('delete from calls where key = ? and owner = ?', key, owner),
  ),
  removeCalls: write(removeAll),
};
