/** The SQL statements for memories. `$1` is the user, `$2` the sessions; `''` stands for entries without a session. */
export const memoryStatements = (schema: string) => {
  const memories = `${schema}.memories`;
  const vectors = `${schema}.memory_vectors`;
  const seen = `memory.user_key = $1 and memory.session_key = any ($2::text[])`;
  const columns = `memory.place, memory.user_id, memory.session_id, memory.id, memory.text,
    memory.kind, memory.created_at, memory.metadata`;
  const newest = 'memory.created_at desc, memory.place desc';
  return {
    add: `
      insert into ${memories} as memory
        (user_key, session_key, user_id, session_id, id_key, id, essence, text, kind, created_at, metadata, words)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::float8, $11,
        array_to_tsvector($12::text[]) ||
          case when $13::text is null then ''::tsvector else to_tsvector($13::text::regconfig, left($8, 100000)) end)
      on conflict do nothing returning ${columns}`,
    known: `
      select ${columns} from ${memories} as memory
      where memory.user_key = $1 and memory.session_key = $2
        and (memory.id_key = $3 or memory.essence = $4)
      order by memory.id_key = $3 desc limit 1`,
    newest: `
      select ${columns} from ${memories} as memory where ${seen} order by ${newest} limit $3`,
    byWords: `
      select ${columns} from ${memories} as memory, (
        select $3::tsquery || case when $5::text is null then ''::tsquery
          else replace(plainto_tsquery($5::text::regconfig, $4)::text, '&', '|')::tsquery end as query
      ) as asked
      where ${seen} and memory.words @@ asked.query
      order by ts_rank(memory.words, asked.query, 1) desc, ${newest} limit $6`,
    byMeaning: `
      select ${columns} from ${memories} as memory join (
        select place, vector from ${vectors} where vector_dims(vector) = vector_dims($3::vector)
      ) as known on known.place = memory.place
      where ${seen} and 1 - (known.vector <=> $3::vector) >= $4::float8
      order by known.vector <=> $3::vector, ${newest} limit $5`,
    withoutVector: `
      select ${columns} from ${memories} as memory
      where ${seen} and not exists (select from ${vectors} as known where known.place = memory.place)
      order by ${newest} limit $3`,
    addVectors: `
      insert into ${vectors} (place, vector)
      select new.place, new.vector::vector
      from unnest($1::bigint[], $2::text[]) as new (place, vector)
      join ${memories} as memory on memory.place = new.place
      on conflict do nothing`,
    makeVectors: `
      create table if not exists ${vectors} (
        place bigint primary key references ${memories} on delete cascade,
        vector vector not null
      )`,
    /** Deletes the entries of the sessions `$2` with the ids `$3`; null stands for all. */
    forget: `
      delete from ${memories} where user_key = $1
        and ($2::text[] is null or session_key = any ($2)) and ($3::text[] is null or id_key = any ($3))
      returning place`,
  };
};
