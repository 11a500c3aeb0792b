import type { ConversationStatements } from '../sql/conversation-work.js';
import type { TablesOfPart } from './tables.js';

export const conversationTables: TablesOfPart = {
  part: 'conversations',
  format: 1,
  statements: [
    `create table conversations (
      place integer primary key,
      key text not null unique,
      id text not null,
      length integer not null default 0,
      -- The position of the head; null for the last message.
      head integer
    ) strict`,
    `create table messages (
      conversation integer not null references conversations on delete cascade,
      position integer not null,
      id text not null,
      message text not null,
      -- The position of the message before it; null if that is the one at the position before.
      after integer,
      primary key (conversation, position),
      unique (conversation, id)
    ) strict`,
    `create index messages_by_branch on messages (conversation, position) where after is not null`,
  ],
};

const own = '(select place from conversations where key = ?1)';
const columns = `position, after, id, case when id like 'h-%' then message end as message`;
const head = 'select coalesce(head, length) as last from conversations where key = ?1';

/** The last branch at or before a position. */
const branchAt = (position: string): string => `(
  select known.position from messages as known
  where known.conversation = ${own} and known.after is not null and known.position <= ${position}
  order by known.position desc limit 1
)`;

/** The path to a position as ranges of positions, from its end: only branches are looked up. */
const ranges = (last: string): string => `
  with recursive range (last, first) as (
    select "end".last, ${branchAt('"end".last')} from (${last}) as "end"
    union all
    select branch.after, ${branchAt('branch.after')}
    from range cross join messages as branch
    where branch.conversation = ${own} and branch.position = range.first and branch.after > 0
  )`;

const load = (last: string): string => `
  ${ranges(last)}
  select message.message from range cross join messages as message
  where message.conversation = ${own} and message.position between coalesce(range.first, 0) and range.last
  order by message.position`;

/** The statements of Postgres in the SQL of SQLite. Lists are JSON. */
export const conversationStatements: ConversationStatements = {
  load: load(head),
  loadAt: load(`select position as last from messages where conversation = ${own} and id = ?2`),
  isOnPath: `
    ${ranges('select ?2 as last')}
    select 1 from range where ?3 between coalesce(first, 0) and last limit 1`,
  head: `select ${columns} from messages where conversation = ${own} and position = (${head})`,
  find: `
    select ${columns} from messages
    where conversation = ${own} and (id in (select value from json_each(?2)) or position = ?3)`,
  findBeginning: `
    select ${columns} from messages
    where conversation = ${own} and (id between ?2 and ?2 || '~' or id between 'h-' and 'h-~')
    order by position desc`,
  siblings: `
    select ${columns} from messages
    where conversation = ${own} and (after = ?2 or after is null and position = ?3)
    order by position`,
  first: `select min(position) as position from messages where conversation = ${own}`,
  all: `
    select "end".last, message.position, message.after, message.id, message.message from (${head}) as "end"
    left join messages as message on message.conversation = ${own}
    order by message.position`,
  outline: `select ${columns} from messages where conversation = ${own} order by position`,
  lock: `
    insert into conversations (key, id) values (?1, ?2)
    on conflict (key) do update set id = excluded.id
    returning length, coalesce(head, length) as last`,
  insert: (key, added) =>
    added.map(({ position, name, text, after }) => ({
      text: `
        insert into messages (conversation, position, id, message, after)
        values (${own}, ?2, ?3, ?4, ?5)`,
      values: [key, position, name, text, after],
    })),
  update: 'update conversations set length = ?2, head = nullif(?3, ?2) where key = ?1',
  remove: `
    delete from messages
    where conversation = ${own} and position in (select value from json_each(?2))`,
  removeAll: `delete from messages where conversation = ${own}`,
};
