/**
 * The statements about calls. A lease is had by whose name is in `owner`, and time is told by the database; where its clock was set back, a sign that stays what it was ($5) tells that nobody renews
 * the lease.
 */
export const callStatements = (schema: string) => {
  const calls = `${schema}.calls`;
  const records = `${schema}.records`;
  const soon = (milliseconds: string): string =>
    `clock_timestamp() + ${milliseconds}::float8 * interval '1 millisecond'`;
  /** All or nothing, and nothing where another one has the lease. */
  const append = (setting: string): string => `
    with held as (
      update ${calls} set
        last_position = last_position + $3::bigint,
        created_at = case when last_position = 0 then clock_timestamp() else created_at end,
        updated_at = clock_timestamp()
      where key = $1 and owner = $2
      returning last_position - $3::bigint as before
    )
    insert into ${records} (call, position, kind, name, seq, text)
    select $1, held.before + record.place, record.kind, record.name, record.seq, record.text
    from held, ${setting}
      unnest($4::text[], $5::text[], $6::bigint[], $7::text[])
        with ordinality as record (kind, name, seq, text, place)
    returning position`;
  return {
    claim: `
      insert into ${calls} as call (key, id, owner, expires_at) values ($1, $2, $3, ${soon('$4')})
      on conflict (key) do update set owner = excluded.owner, expires_at = excluded.expires_at
      where call.expires_at is null or call.expires_at <= clock_timestamp()
        or call.owner || ' ' || call.expires_at = $5
      returning last_position`,
    holder: `select owner || ' ' || expires_at as sign from ${calls} where key = $1 and owner is not null`,
    renew: `update ${calls} set expires_at = ${soon('$3')} where key = $1 and owner = $2 returning key`,
    giveBack: `update ${calls} set owner = null, expires_at = null where key = $1 and owner = $2`,
    isHeld: `select key from ${calls} where key = $1 and owner = $2`,
    append: append(''),
    /** Events alone need not wait for the disk. */
    appendEvents: append(`(select set_config('synchronous_commit', 'off', true)) as setting,`),
    /** As many as there are, up to some bytes, but at least one. */
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
    /** A page behind the place that a call has in the list. Who has ended before anything was written down has left a call that is none. */
    list: `
      select
        call.key, call.id, call.expires_at is not null and call.expires_at > clock_timestamp() as is_open,
        to_char(call.updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as place,
        floor(extract(epoch from call.created_at) * 1000)::float8 as created_at,
        floor(extract(epoch from call.updated_at) * 1000)::float8 as updated_at,
        first.position as first_position, first.kind as first_kind, first.name as first_name,
        first.seq as first_seq, first.text as first_text,
        last.position as last_position, last.kind as last_kind, last.name as last_name,
        last.seq as last_seq, last.text as last_text
      from (
        select * from ${calls}
        where updated_at <= $1::timestamptz and (updated_at < $1::timestamptz or key < $2)
          and (last_position > 0 or expires_at > clock_timestamp())
        order by updated_at desc, key desc limit $3
      ) as call
      left join ${records} as first on first.call = call.key and first.position = 1
      left join ${records} as last on last.call = call.key and last.position = call.last_position
      order by call.updated_at desc, call.key desc`,
    remove: `delete from ${calls} where key = $1 and owner = $2`,
  };
};

/** The statements about calls, by what they do. */
export type CallStatements = ReturnType<typeof callStatements>;
