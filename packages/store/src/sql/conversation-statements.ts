import type { ConversationStatements } from './conversation-work.js';

/**
 * The SQL statements for conversations. `$1` is the conversation. A message has a position, which grows and is never reused. `after` is the
 * position of the message before it, 0 for the beginning. If it is null, the message comes after the one at the position before, and at the
 * beginning if that does not exist. `head` is a position, too; null for the last one.
 */
export const conversationStatements = (schema: string): ConversationStatements => {
  const conversations = `${schema}.conversations`;
  const messages = `${schema}.messages`;
  const head = `select coalesce(head, length) as last from ${conversations} where key = $1`;
  const { load, isOnPath } = pathStatements(messages);
  /** A long id cannot be read from the column. */
  const columns = `position, after, id, case when id like 'h-%' then message end as message`;
  return {
    load: load(head),
    /** The path to the message whose id has the name `$2`. */
    loadAt: load(`select position as last from ${messages} where conversation = $1 and id = $2`),
    isOnPath,
    head: `select ${columns} from ${messages} where conversation = $1 and position = (${head})`,
    find: `select ${columns} from ${messages}
      where conversation = $1 and (id = any ($2::text[]) or position = $3::bigint)`,
    /** The messages whose ids may begin with a string, the last one first. */
    findBeginning: `select ${columns} from ${messages}
      where conversation = $1 and (left(id, length($2::text)) = $2::text or id like 'h-%')
      order by position desc`,
    siblings: `select ${columns} from ${messages}
      where conversation = $1 and (after = $2::bigint or after is null and position = $3::bigint)
      order by position`,
    first: `select min(position) as position from ${messages} where conversation = $1`,
    all: `
      select "end".last, message.position, message.after, message.id, message.message from (${head}) as "end"
      left join ${messages} as message on message.conversation = $1
      order by message.position`,
    outline: `select ${columns} from ${messages} where conversation = $1 order by position`,
    /** Locks the conversation until the transaction ends. */
    lock: `
      insert into ${conversations} (key, id) values ($1, $2)
      on conflict (key) do update set id = excluded.id
      returning length, coalesce(head, length) as last`,
    insert: insertInto(messages),
    update: `
      update ${conversations} set length = $2, head = nullif($3::bigint, $2), updated_at = clock_timestamp()
      where key = $1`,
    remove: `delete from ${messages} where conversation = $1 and position = any ($2::bigint[])`,
    removeAll: `delete from ${messages} where conversation = $1`,
  };
};

const pathStatements = (messages: string) => {
  /**
   * The path to a position as ranges of positions, from its end: messages that come after the one at the position before follow each
   * other, so only branches are looked up.
   */
  const ranges = (last: string): string => `
    with recursive range as (
      select "end".last, branch.first, branch.after from (${last}) as "end"
      left join lateral (
        select position as first, after from ${messages}
        where conversation = $1 and after is not null and position <= "end".last
        order by position desc limit 1
      ) as branch on true
      union all
      select range.after, branch.first, branch.after from range
      left join lateral (
        select position as first, after from ${messages}
        where conversation = $1 and after is not null and position <= range.after
        order by position desc limit 1
      ) as branch on true
      where range.after > 0
    )`;
  const load = (last: string): string => `
    ${ranges(last)}
    select message.message from range cross join lateral (
      select position, message from ${messages}
      where conversation = $1 and position between coalesce(range.first, 0) and range.last
      -- A planner without statistics would compare each message with each range.
      offset 0
    ) as message
    order by message.position`;
  return {
    load,
    /** Whether the message at `$3` is on the path to `$2`. */
    isOnPath: `
      ${ranges('select $2::bigint as last')}
      select from range where $3::bigint between coalesce(first, 0) and last limit 1`,
  };
};

const insertInto =
  (messages: string): ConversationStatements['insert'] =>
  (key, added) => [
    {
      text: `
        insert into ${messages} (conversation, position, id, message, after)
        select $1, message.position, message.id, message.text, message.after
        from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[])
          as message (position, id, text, after)`,
      values: [
        key,
        added.map(({ position }) => position),
        added.map(({ name }) => name),
        added.map(({ text }) => text),
        added.map(({ after }) => after),
      ],
    },
  ];
