/** The tables of one part of a store. Each part has a format of its own, the only one that is read. */
export interface TablesOfPart {
  readonly part: string;
  readonly format: number;
  readonly statements: readonly string[];
}

export const callTables: TablesOfPart = {
  part: 'calls',
  format: 1,
  statements: [
    `create table calls (
      -- Never reused, and greater for later calls.
      place integer primary key autoincrement,
      key text not null unique,
      id text not null,
      owner text,
      expires_at integer,
      last_position integer not null default 0,
      session text,
      has_ended integer not null default 0,
      created_at integer not null,
      updated_at integer not null
    ) strict`,
    `create index calls_by_session on calls (session, place) where session is not null`,
    `create index calls_by_update on calls (updated_at, place)`,
    `create index calls_unfinished on calls (updated_at, place) where has_ended = 0`,
    `create table records (
      call integer not null references calls on delete cascade,
      position integer not null,
      kind text not null,
      name text not null,
      seq integer not null,
      text text not null,
      primary key (call, position)
    ) strict, without rowid`,
  ],
};
