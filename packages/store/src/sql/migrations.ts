/** What has made the tables, version by version: what was released is never changed, only added to. Each is a list of statements. */
export const migrationsOf = (schema: string): readonly (readonly string[])[] => [
  [
    `create table ${schema}.calls (
      key text primary key,
      id text not null,
      owner text,
      expires_at timestamptz,
      last_position bigint not null default 0,
      created_at timestamptz not null default clock_timestamp(),
      updated_at timestamptz not null default clock_timestamp()
    )`,
    `create index calls_by_update on ${schema}.calls (updated_at desc)`,
    `create table ${schema}.records (
      call text not null references ${schema}.calls on delete cascade,
      position bigint not null,
      kind text not null,
      name text not null,
      seq bigint not null,
      text text not null,
      primary key (call, position)
    )`,
    `create table ${schema}.conversations (
      key text primary key,
      id text not null,
      length bigint not null default 0,
      created_at timestamptz not null default clock_timestamp(),
      updated_at timestamptz not null default clock_timestamp()
    )`,
    `create table ${schema}.messages (
      conversation text not null references ${schema}.conversations on delete cascade,
      position bigint not null,
      id text not null,
      message text not null,
      primary key (conversation, position),
      unique (conversation, id)
    )`,
    `create table ${schema}.memories (
      place bigint generated always as identity primary key,
      user_key text not null,
      session_key text not null,
      user_id text not null,
      session_id text,
      id_key text not null,
      id text not null,
      essence text not null,
      text text not null,
      kind text not null,
      created_at float8 not null,
      metadata text not null,
      words tsvector not null,
      unique (user_key, session_key, id_key),
      unique (user_key, session_key, essence)
    )`,
    `create index memories_by_date on ${schema}.memories (user_key, session_key, created_at desc, place desc)`,
    `create index memories_by_words on ${schema}.memories using gin (words)`,
  ],
  [
    // No version comes again, also where a session was removed and is saved anew.
    `create sequence ${schema}.session_versions`,
    `create table ${schema}.sessions (
      key text primary key,
      id text not null,
      version bigint not null default nextval('${schema}.session_versions'),
      state text not null,
      created_at timestamptz not null default clock_timestamp(),
      updated_at timestamptz not null default clock_timestamp()
    )`,
  ],
];
