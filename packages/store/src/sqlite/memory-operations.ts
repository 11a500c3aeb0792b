import type { NewMemoryRow, SeenMemories } from '../sql/memory-table.js';
import { numberIn } from '../sql/text.js';
import type { Database } from './database.js';
import { read, write } from './operation.js';
import type { SqlRow } from './sqlite-driver.js';
import type { TablesOfPart } from './tables.js';
import { packedVector, similarityTo } from './vectors.js';
import { token, tokensOf, wordTable } from './words.js';

export const memoryTables: TablesOfPart = {
  part: 'memories',
  format: 1,
  statements: [
    `create table memory_users (
      place integer primary key,
      key text not null unique
    ) strict`,
    `create table memories (
      -- Never reused: a vector may be computed while its entry is deleted.
      place integer primary key autoincrement,
      user integer not null references memory_users,
      session_key text not null,
      user_id text not null,
      session_id text,
      id_key text not null,
      id text not null,
      essence text not null,
      text text not null,
      kind text not null,
      created_at real not null,
      metadata text not null,
      -- The weight of a word that is found: the more words there are, the less each of them counts.
      weight real not null,
      unique (user, session_key, id_key),
      unique (user, session_key, essence)
    ) strict`,
    `create index memories_by_date on memories (user, created_at, place)`,
    ...wordTable('memory_words', 'words'),
    `create table memory_vectors (
      memory integer primary key references memories on delete cascade,
      vector blob not null
    ) strict`,
    `create trigger memory_forgotten after delete on memories begin
      delete from memory_words where rowid = old.place;
    end`,
  ],
};

const own = ['place', 'user_id', 'session_id', 'id', 'text', 'kind', 'created_at', 'metadata'];
const columns = own.map((name) => `memory.${name}`).join(', ');
const newestFirst = 'memory.created_at desc, memory.place desc';

/** The entries of the user `?1` in the sessions `?2`. */
const seen = `memory.user = (select place from memory_users where key = ?1)
  and memory.session_key in (select value from json_each(?2))`;

const seenValues = ({ userKey, sessionKeys }: SeenMemories) =>
  [userKey, JSON.stringify(sessionKeys)] as const;

const userOf = (database: Database, userKey: string): number | undefined => {
  const row = database.get('select place from memory_users where key = ?', userKey);
  return row && numberIn(row, 'place');
};

const record = (database: Database, memories: readonly NewMemoryRow[]): readonly SqlRow[] =>
  memories.flatMap((memory) => {
    const { userKey, sessionKey, userId, sessionId, idKey, id } = memory;
    const { essence, text, kind, createdAt, metadata, words } = memory;
    database.run('insert into memory_users (key) values (?) on conflict do nothing', userKey);
    const user = userOf(database, userKey) ?? 0;
    const [added] = database.all(
      `insert into memories (user, session_key, user_id, session_id, id_key, id, essence, text,
        kind, created_at, metadata, weight)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      on conflict do nothing returning ${own.join(', ')}`,
      ...[user, sessionKey, userId, sessionId, idKey, id, essence, text],
      ...[kind, createdAt, metadata, words.length === 0 ? 0 : 1 / Math.log2(words.length + 1)],
    );
    if (added === undefined) return knownRow(database, user, memory);
    const tokens = words.map((word) => token(user, word)).join(' ');
    database.run(
      'insert into memory_words (rowid, words) values (?, ?)',
      numberIn(added, 'place'),
      tokens,
    );
    return [added];
  });

/** The entry with the same id or text. */
const knownRow = (
  database: Database,
  user: number,
  { sessionKey, idKey, essence }: NewMemoryRow,
): readonly SqlRow[] =>
  database.all(
    `select ${columns} from memories as memory
    where memory.user = ?1 and memory.session_key = ?2 and (memory.id_key = ?3 or memory.essence = ?4)
    order by memory.id_key = ?3 desc limit 1`,
    user,
    sessionKey,
    idKey,
    essence,
  );

/** The rank is that of `ts_rank` in Postgres: the part of the words that an entry has, by the length of the entry. */
const byWords = (
  database: Database,
  which: SeenMemories,
  words: readonly string[],
  limit: number,
): readonly SqlRow[] => {
  const user = userOf(database, which.userKey);
  if (user === undefined) return [];
  return database.all(
    `select ${columns} from (
      select doc, count(*) as found from memory_words_places
      where term in (select value from json_each(?3)) group by doc
    ) as hit cross join memories as memory on memory.place = hit.doc
    where ${seen}
    order by hit.found * memory.weight desc, ${newestFirst} limit ?4`,
    ...seenValues(which),
    tokensOf(user, words),
    limit,
  );
};

const byMeaning = (
  database: Database,
  which: SeenMemories,
  vector: readonly number[],
  threshold: number,
  limit: number,
): readonly SqlRow[] => {
  const similarity = similarityTo(vector);
  const places = database
    .all(
      `select memory.place, known.vector from memories as memory
      cross join memory_vectors as known on known.memory = memory.place
      where ${seen} order by ${newestFirst}`,
      ...seenValues(which),
    )
    .map((row) => ({ place: numberIn(row, 'place'), score: similarity(row['vector']) }))
    .filter(({ score }) => score >= threshold)
    .sort((one, other) => other.score - one.score)
    .slice(0, limit)
    .map(({ place }) => place);
  return database.all(
    `select ${columns} from json_each(?) as wanted
    cross join memories as memory on memory.place = wanted.value order by wanted.key`,
    JSON.stringify(places),
  );
};

const addVectors = (
  database: Database,
  places: readonly number[],
  vectors: readonly (readonly number[])[],
): void =>
  places.forEach((place, index) =>
    database.run(
      `insert into memory_vectors (memory, vector)
      select place, ?2 from memories where place = ?1 on conflict do nothing`,
      place,
      packedVector(vectors[index] ?? []),
    ),
  );

/** The operations of a `MemoryTable`. */
export const memoryOperations = {
  recordMemories: write(record),
  newestMemories: read((database, which: SeenMemories, limit: number) =>
    database.all(
      `select ${columns} from memories as memory where ${seen} order by ${newestFirst} limit ?3`,
      ...seenValues(which),
      limit,
    ),
  ),
  memoriesByWords: read(byWords),
  memoriesByMeaning: read(byMeaning),
  memoriesWithoutVector: read((database, which: SeenMemories, limit: number) =>
    database.all(
      `select ${columns} from memories as memory
      where ${seen} and not exists (select 1 from memory_vectors as known where known.memory = memory.place)
      order by ${newestFirst} limit ?3`,
      ...seenValues(which),
      limit,
    ),
  ),
  addMemoryVectors: write(addVectors),
  forgetMemories: write(
    (
      database,
      userKey: string,
      sessionKeys: readonly string[] | null,
      idKeys: readonly string[] | null,
    ) =>
      database.run(
        `delete from memories where user = (select place from memory_users where key = ?1)
          and (?2 is null or session_key in (select value from json_each(?2)))
          and (?3 is null or id_key in (select value from json_each(?3)))`,
        userKey,
        sessionKeys && JSON.stringify(sessionKeys),
        idKeys && JSON.stringify(idKeys),
      ),
  ),
};
