export const documentTableStatements = (schema: string): readonly string[] => [
  `create table ${schema}.document_indexes (
    place integer generated always as identity primary key,
    key text not null unique,
    name text not null,
    language text,
    embedder text,
    dimensions integer
  )`,
  `create table ${schema}.documents (
    place bigint generated always as identity primary key,
    index_place integer not null references ${schema}.document_indexes on delete cascade,
    key text not null,
    source text not null,
    hash text not null,
    updated_at timestamptz not null default clock_timestamp(),
    unique (index_place, key)
  )`,
  `create table ${schema}.chunks (
    document bigint not null references ${schema}.documents on delete cascade,
    position integer not null,
    index_place integer not null,
    source text not null,
    title text not null,
    text text not null,
    start integer not null,
    stop integer not null,
    line integer not null,
    words tsvector not null,
    primary key (document, position)
  )`,
  `create index chunks_by_words on ${schema}.chunks using gin (words)`,
  `create index chunks_by_index on ${schema}.chunks (index_place)`,
];

/** Those that create the table of vectors, for databases with pgvector. */
export const vectorTableStatements = (schema: string): readonly string[] => [
  `create table ${schema}.chunk_vectors (
    document bigint not null,
    position integer not null,
    index_place integer not null,
    vector vector not null,
    primary key (document, position),
    foreign key (document, position) references ${schema}.chunks on delete cascade
  )`,
  // Beside its row, not in another table: a search reads every vector.
  `alter table ${schema}.chunk_vectors alter column vector set storage main`,
  `create index chunk_vectors_by_index on ${schema}.chunk_vectors (index_place)`,
];

/** The SQL statements for documents. `$1` is the place of the index. */
export const documentStatements = (schema: string) => {
  const indexes = `${schema}.document_indexes`;
  const documents = `${schema}.documents`;
  const chunks = `${schema}.chunks`;
  const vectors = `${schema}.chunk_vectors`;
  return {
    makeIndex: `
      insert into ${indexes} (key, name, language)
      select $1, $2, $3::text where $3::text is null or $3::text::regconfig is not null
      on conflict (key) do nothing`,
    index: `select place, language, embedder, dimensions from ${indexes} where key = $1`,
    /** The first embedder that adds vectors stays that of the index. */
    setEmbedder: `
      update ${indexes} set embedder = case when dimensions is null then $2 else embedder end, dimensions = coalesce(dimensions, $3::integer)
      where place = $1 returning embedder, dimensions`,
    hashes: `select key, hash from ${documents} where index_place = $1 and key = any ($2::text[])`,
    /** Locks the document until the end of the transaction. No row if the index was removed. */
    lock: `
      insert into ${documents} (index_place, key, source, hash)
      select place, $2, $3, '' from ${indexes} where place = $1
      on conflict (index_place, key) do update set source = excluded.source returning place, hash`,
    clear: `delete from ${chunks} where document = $1`,
    addChunks: `
      insert into ${chunks} (document, index_place, position, source, title, text, start, stop, line, words)
      select $2::bigint, $1, new.position, new.source, new.title, new.text, new.start, new.stop, new.line,
        new.words::tsvector || case when $3::text is null then ''::tsvector else
          setweight(to_tsvector($3::text::regconfig, new.title), 'B') ||
          to_tsvector($3::text::regconfig, left(new.text, 100000)) end
      from unnest($4::integer[], $5::text[], $6::text[], $7::text[], $8::integer[], $9::integer[], $10::integer[], $11::text[])
        as new (position, source, title, text, start, stop, line, words)`,
    addVectors: `
      insert into ${vectors} (document, index_place, position, vector)
      select $2::bigint, $1, new.position, new.vector::vector
      from unnest($3::integer[], $4::text[]) as new (position, vector)`,
    finish: `update ${documents} set hash = $2, updated_at = clock_timestamp() where place = $1`,
    ...searchStatements(chunks, vectors),
    sources: `
      select source from ${documents} where index_place = $1 and starts_with(source, $2)
      order by source`,
    remove: `delete from ${documents} where index_place = $1 and key = any ($2::text[]) returning place`,
    removePrefix: `delete from ${documents} where index_place = $1 and starts_with(source, $2) returning place`,
    removeIndex: `delete from ${indexes} where place = $1`,
  };
};

const searchStatements = (chunks: string, vectors: string) => {
  const passage = `found.document, found.position, chunk.source, chunk.title, chunk.text, chunk.start, chunk.stop, chunk.line`;
  const joined = `join ${chunks} as chunk on chunk.document = found.document and chunk.position = found.position`;
  return {
    /** The rarer a term is in the index, the more it counts, as in BM25; `ts_rank` saturates and weighs the length. */
    byWords: `
      with terms as (
        select distinct ('''' || replace(replace(term, '\\', '\\\\'), '''', '''''') || '''')::tsquery as query
        from (
          select unnest($2::text[]) as term union
          select unnest(tsvector_to_array(to_tsvector($3::text::regconfig, $4::text))) where $3::text is not null
        ) as all_terms
      ), hits as materialized (
        select chunk.document, chunk.position, terms.query
        from terms cross join lateral (
          -- Without an offset, each chunk would be compared with each term, which reads all of its words.
          select document, position from ${chunks} where words @@ terms.query and index_place = $1 offset 0
        ) as chunk
      ), weights as (
        select query, ln(1 + (total.count - count(*) + 0.5) / (count(*) + 0.5)) as weight
        from hits, (select count(*) as count from ${chunks} where index_place = $1) as total
        group by query, total.count
      ), weighted as (
        select document, position, array_agg(query) as queries, array_agg(weight) as weights
        from hits join weights using (query)
        group by document, position order by sum(weight) desc, document, position limit $6
      ), found as (
        select document, position, (
          select sum(weight * ts_rank(chunk.words, query, 1)) from unnest(queries, weights) as term (query, weight)
        ) as score
        from weighted join ${chunks} as chunk using (document, position)
        order by score desc, document, position limit $5
      )
      select ${passage} from found ${joined} order by found.score desc, found.document, found.position`,
    byMeaning: `
      select ${passage} from (
        select document, position, vector <#> $2::vector as distance from ${vectors}
        where index_place = $1 order by distance, document, position limit $4
      ) as found ${joined} where -found.distance >= $3::float8
      order by found.distance, found.document, found.position`,
  };
};
