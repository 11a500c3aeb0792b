import type { CallQuery } from 'millrace/journal';
import type { PageEnd } from './call-table.js';
import { toSqlText } from './text.js';

/**
 * The SQL statements for calls. `owner` holds the lease, by the clock of the database. If that clock was set back, an
 * unchanged heartbeat (`$5`) proves that the lease is not renewed.
 */
export const callStatements = (schema: string) => ({
  ...leaseStatements(`${schema}.calls`),
  ...recordStatements(`${schema}.calls`, `${schema}.records`),
});

const recordStatements = (calls: string, records: string) => {
  /** Appends all records, or none if another writer holds the lease, or they were appended already. */
  const append = (setting: string): string => `
    with held as (
      update ${calls} set
        last_position = last_position + $3::bigint,
        created_at = case when last_position = 0 then clock_timestamp() else created_at end,
        updated_at = clock_timestamp(),
        session = coalesce(session, $8),
        has_ended = $10
      where key = $1 and owner = $2 and last_position = $9::bigint
      returning last_position - $3::bigint as before
    )
    insert into ${records} (call, position, kind, name, seq, text)
    select $1, held.before + record.place, record.kind, record.name, record.seq, record.text
    from held, ${setting}
      unnest($4::text[], $5::text[], $6::bigint[], $7::text[])
        with ordinality as record (kind, name, seq, text, place)
    returning position`;
  return {
    position: `select last_position from ${calls} where key = $1 and owner = $2`,
    append: append(''),
    /** A batch without steps does not wait for the disk. */
    appendEvents: append(`(select set_config('synchronous_commit', 'off', true)) as setting,`),
    /** Reads up to 500 records and about 1 MB, at least one record. */
    read: `
      select position, kind, name, seq, text from (
        select *, sum(octet_length(text)) over (order by position) - octet_length(text) as bytes
        from (
          select * from ${records}
          where call = $1 and position > $2 and seq > $3 and ($4::text is null or kind = $4)
          order by position limit 500
        ) as page
      ) as sized
      where bytes < 1000000 order by position`,
    remove: `delete from ${calls} where key = $1 and owner = $2`,
    /** The deleted calls with their sessions, and the unknown ones. */
    removeAll: `
      with removed as (
        delete from ${calls} where key = any ($1::text[]) and (expires_at is null or expires_at <= clock_timestamp())
        returning key, session
      )
      select key, session from removed
      union all
      select key, null from unnest($1::text[]) as given (key)
      where not exists (select from ${calls} as call where call.key = given.key)`,
  };
};

const leaseStatements = (calls: string) => {
  const soon = (milliseconds: string): string =>
    `clock_timestamp() + ${milliseconds}::float8 * interval '1 millisecond'`;
  return {
    claim: `
      insert into ${calls} as call (key, id, owner, expires_at) values ($1, $2, $3, ${soon('$4')})
      on conflict (key) do update set owner = excluded.owner, expires_at = excluded.expires_at
      where call.expires_at is null or call.expires_at <= clock_timestamp()
        or call.owner || ' ' || call.expires_at = $5
        -- The answer to the same claim was lost.
        or call.owner = excluded.owner
      returning last_position`,
    holder: `select owner || ' ' || expires_at as sign from ${calls} where key = $1 and owner is not null`,
    renew: `update ${calls} set expires_at = ${soon('$3')} where key = $1 and owner = $2 returning key`,
    release: `update ${calls} set owner = null, expires_at = null where key = $1 and owner = $2`,
    releaseAll: `update ${calls} set owner = null, expires_at = null where key = any($1)`,
  };
};

/**
 * A page of the list of calls after another one. Contains only the conditions of the query, so that the planner can use an
 * index for each of them. Skips calls without records that no process holds: their writer has crashed.
 */
export const listStatement = (
  schema: string,
  { sessionId, isUnfinished, writtenUntil }: CallQuery,
  after: PageEnd | undefined,
): readonly [statement: string, values: readonly unknown[]] => {
  const values: unknown[] = [];
  const value = (given: unknown): string => `$${values.push(given)}`;
  const conditions = ['(last_position > 0 or expires_at > clock_timestamp())'];
  const [place, type] =
    sessionId === undefined ? ['updated_at', 'timestamptz'] : ['place', 'bigint'];
  if (sessionId !== undefined) {
    conditions.push(`md5(session) = md5(${value(toSqlText(sessionId))})`);
  }
  if (after !== undefined) {
    const [end, key] = after;
    conditions.push(`(${place}, key) < (${value(end)}::${type}, ${value(key)})`);
  }
  if (isUnfinished === true) conditions.push('has_ended is not true');
  if (writtenUntil !== undefined) {
    // The times of calls are whole milliseconds.
    const until = value(Math.floor(writtenUntil) + 1);
    conditions.push(
      `updated_at < 'epoch'::timestamptz + ${until}::float8 * interval '1 millisecond'`,
    );
  }
  // A session usually needs only its latest calls.
  const limit = value(sessionId === undefined ? 50 : 5);
  const order = `order by ${place} desc, key desc`;
  const statement = `
    select
      call.*, expires_at > clock_timestamp() as is_open, ${place}::text as page_end,
      extract(epoch from created_at) * 1000 as created_ms, extract(epoch from updated_at) * 1000 as updated_ms,
      row_to_json(first) as first, row_to_json(last) as last
    from (
      select * from ${schema}.calls where ${conditions.join(' and ')} ${order} limit ${limit}
    ) as call
    left join ${schema}.records as first on first.call = call.key and first.position = 1
    left join ${schema}.records as last on last.call = call.key and last.position = call.last_position
    ${order}`;
  return [statement, values];
};

export type CallStatements = ReturnType<typeof callStatements>;
