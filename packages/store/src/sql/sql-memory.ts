import type { AppendOptions, Entry, MemoryChange, Message, MessageTree } from '@millrace/core';
import { chained, checkTree, unknownPlace, withoutBelow } from '@millrace/core/values';
import { defer, from } from 'rxjs';
import { packed, parseMessage } from '../memory/stored-messages.js';
import type { StoredMemory, StoredMemoryFactory } from '../memory/stored-memory.js';
import { checkId, parseStoredName, storedName } from '../stored-name.js';
import { conversationStatements } from './conversation-statements.js';
import type { LazySql, Query, Row } from './sql.js';
import { numberIn, textIn, toSqlText } from './text.js';

/** Stores conversations in a database, one row per message. Two processes that append after the same message create two branches. */
export const sqlMemory =
  (sql: LazySql): StoredMemoryFactory =>
  (sessionId) => {
    checkId('A session', sessionId);
    return memoryIn(sql, storedName(sessionId), sessionId);
  };

const memoryIn = (lazy: LazySql, key: string, sessionId: string): StoredMemory => {
  const read = async <T>(work: (reader: Reader) => Promise<T>): Promise<T> => {
    const sql = await lazy.open();
    return work(readerOf(sql.query, sql.schema, key));
  };
  /** Works in a transaction that locks the conversation. */
  const write = async <T>(work: (reader: Reader, locked: Locked) => Promise<T>): Promise<T> => {
    const sql = await lazy.open();
    return sql.transaction(async (query) => {
      const reader = readerOf(query, sql.schema, key);
      const [row = {}] = await reader.rows('lock', toSqlText(sessionId));
      return work(reader, { length: numberIn(row, 'length'), head: numberIn(row, 'last') });
    });
  };
  return {
    load$: ({ at } = {}) => defer(() => from(read((reader) => load(reader, at)))),
    last$: ({ at } = {}) =>
      defer(() =>
        from(
          read(({ headId, locate }) => {
            if (at === undefined) return headId();
            return at === null ? Promise.resolve(null) : locate(at).then(({ id }) => id);
          }),
        ),
      ),
    append$: (messages, options) =>
      defer(() => {
        // Serialize the messages now: they may change while the database opens.
        const texts = textsOf(messages);
        return from(write((reader, locked) => append(reader, locked, messages, texts, options)));
      }),
    branches$: (at) => defer(() => from(read((reader) => branches(reader, at)))),
    moveHead$: (to) => defer(() => from(write((reader, locked) => moveHead(reader, locked, to)))),
    remove$: (at) => defer(() => from(write((reader, locked) => remove(reader, locked, at)))),
    all$: () => defer(() => from(read(all))),
    replace$: (tree) =>
      defer(() => {
        checkTree(tree);
        const texts = textsOf(tree.entries.map(({ message }) => message));
        return from(write((reader, locked) => replace(reader, locked, tree, texts)));
      }),
  };
};

type Texts = ReadonlyMap<string, string>;

const textsOf = (messages: readonly Message[]): Texts =>
  new Map(messages.map((message) => [message.id, JSON.stringify(message)]));

/** A locked conversation. */
interface Locked {
  /** The last position that was given to a message. */
  readonly length: number;
  /** The position of the head. No message has it if the conversation is empty. */
  readonly head: number;
}

/** A message without its content. */
interface Found {
  readonly id: string;
  readonly position: number;
  /** The position of the message before it. If no message has it, this one is at the beginning. */
  readonly after: number;
}

interface Reader {
  readonly rows: (
    statement: keyof ReturnType<typeof conversationStatements>,
    ...values: readonly unknown[]
  ) => Promise<readonly Row[]>;
  /** The messages with these ids, and the one at a position. */
  readonly find: (ids: readonly string[], position?: number) => Promise<readonly Found[]>;
  /** The id of the message at a position. */
  readonly idAt: (position: number) => Promise<string | null>;
  readonly headId: () => Promise<string | null>;
  /** The message with an id, or the last one of the call with that id. Rejects with `conflict` if both are unknown. */
  readonly locate: (at: string, known?: readonly Found[]) => Promise<Found>;
  readonly unknown: (at: string) => Promise<Error>;
}

const readerOf = (query: Query, schema: string, key: string): Reader => {
  const statements = conversationStatements(schema);
  const rows: Reader['rows'] = (statement, ...values) =>
    query(statements[statement], [key, ...values]);
  const find: Reader['find'] = async (ids, position = 0) =>
    (await rows('find', ids.map(storedName), position)).map(foundIn);
  const idAt = async (position: number): Promise<string | null> =>
    (await find([], position))[0]?.id ?? null;
  const headId = async (): Promise<string | null> =>
    (await rows('head')).map(foundIn)[0]?.id ?? null;
  const unknown = async (at: string): Promise<Error> => unknownPlace(at, await headId());
  return {
    rows,
    find,
    idAt,
    headId,
    unknown,
    locate: async (at, known) => {
      const exact = (known ?? (await find([at]))).find(({ id }) => id === at);
      if (exact !== undefined) return exact;
      const name = storedName(`${at}/`);
      // The names of long ids do not begin with the ids.
      const beginning = name.startsWith('i-') ? name : 'h-';
      const candidates = (await rows('findBeginning', beginning)).map(foundIn);
      const end = candidates.find(({ id }) => id.startsWith(`${at}/`));
      if (end === undefined) throw await unknown(at);
      return end;
    },
  };
};

const foundIn = (row: Row): Found => ({
  id: parseStoredName(textIn(row, 'id')) ?? parseMessage(textIn(row, 'message')).id,
  position: numberIn(row, 'position'),
  after: afterIn(row),
});

const afterIn = (row: Row): number =>
  row['after'] === null ? numberIn(row, 'position') - 1 : numberIn(row, 'after');

const load = async (
  { rows, locate, unknown }: Reader,
  at: string | null | undefined,
): Promise<readonly Message[]> => {
  if (at === null) return [];
  const pathTo = (id: string): Promise<readonly Row[]> => rows('loadAt', storedName(id));
  const exact = at === undefined ? await rows('load') : await pathTo(at);
  const isExact = at === undefined || exact.length > 0;
  const path = isExact ? exact : await pathTo((await locate(at)).id);
  if (at !== undefined && path.length === 0) throw await unknown(at);
  return path.map((row) => parseMessage(textIn(row, 'message')));
};

const append = async (
  { rows, find, idAt, locate }: Reader,
  { length, head }: Locked,
  messages: readonly Message[],
  texts: Texts,
  { after: given, replaces }: AppendOptions = {},
): Promise<MemoryChange> => {
  const named = [given, replaces].filter((id) => typeof id === 'string');
  const known = await find([...texts.keys(), ...named], head);
  const positions = new Map(known.map(({ id, position }) => [id, position]));
  const headId = known.find(({ position }) => position === head)?.id ?? null;
  const end = typeof given === 'string' ? await locate(given, known) : undefined;
  if (end !== undefined) positions.set(end.id, end.position);
  const before = given === undefined ? headId : (end?.id ?? null);
  const { added, last } = chained(messages, new Map(known.map(({ id }) => [id, null])), before);
  const former = known.find(({ id }) => id === messages[0]?.id);
  const after = former === undefined ? before : await idAt(former.after);
  const change = { appended: messages, removed: [], after };
  const [first] = added;
  if (first === undefined) return { ...change, head: { from: headId, to: headId } };
  const isReplaced = async (): Promise<boolean> => {
    const top = replaces === undefined ? undefined : positions.get(replaces);
    return top !== undefined && (await rows('isOnPath', head, top)).length > 0;
  };
  const isMoved = first.after === headId || (await isReplaced());
  await insert(rows, length, added, texts, positions);
  const to = isMoved ? last : headId;
  await rows('update', length + added.length, positionOf(to, positions));
  return { ...change, head: { from: headId, to } };
};

/** Inserts entries after a position, and adds theirs to `positions`. */
const insert = async (
  rows: Reader['rows'],
  length: number,
  entries: readonly Entry[],
  texts: Texts,
  positions: Map<string, number>,
): Promise<void> => {
  const placed = entries.map(({ message: { id }, after }, index) => {
    const position = length + 1 + index;
    positions.set(id, position);
    const before = positionOf(after, positions);
    return { id, after: before === position - 1 ? null : before };
  });
  await rows(
    'insert',
    length,
    placed.map(({ id }) => storedName(id)),
    placed.map(({ id }) => toSqlText(texts.get(id) ?? '')),
    placed.map(({ after }) => after),
  );
};

/** The position of a message, 0 for the beginning. */
const positionOf = (id: string | null, positions: ReadonlyMap<string, number>): number =>
  id === null ? 0 : (positions.get(id) ?? 0);

const branches = async ({ rows, locate }: Reader, at: string): Promise<readonly string[]> => {
  const { position, after } = await locate(at);
  const [row = {}] = await rows('first');
  const first = numberIn(row, 'position');
  const siblings =
    after === 0 || position === first
      ? await rows('siblings', 0, first)
      : await rows('siblings', after, after + 1);
  return siblings.map((sibling) => foundIn(sibling).id);
};

const moveHead = async (
  { rows, idAt, locate }: Reader,
  { length, head }: Locked,
  to: string,
): Promise<MemoryChange> => {
  const { id, position } = await locate(to);
  const before = await idAt(head);
  if (position !== head) await rows('update', length, position);
  return { appended: [], removed: [], head: { from: before, to: id } };
};

const remove = async (
  { rows }: Reader,
  { length, head }: Locked,
  at: string,
): Promise<MemoryChange> => {
  const { tree, positions } = treeOf(await rows('outline'), head, (row) =>
    packed(foundIn(row).id, ''),
  );
  const left = withoutBelow(tree, at);
  const isLeft = new Set(left.entries.map(({ message }) => message.id));
  const removed = [...positions.keys()].filter((id) => !isLeft.has(id));
  await rows(
    'remove',
    removed.map((id) => positions.get(id)),
  );
  await rows('update', length, positionOf(left.head, positions));
  return { appended: [], removed, head: { from: tree.head, to: left.head } };
};

const all = async ({ rows }: Reader): Promise<MessageTree> => {
  const found = await rows('all');
  const [row] = found;
  return row === undefined || row['position'] === null
    ? treeOf([], 0, () => packed('', '')).tree
    : treeOf(found, numberIn(row, 'last'), (it) => parseMessage(textIn(it, 'message'))).tree;
};

/** The tree of rows in the order of their positions. */
const treeOf = (
  rows: readonly Row[],
  head: number,
  messageIn: (row: Row) => Message,
): { readonly tree: MessageTree; readonly positions: ReadonlyMap<string, number> } => {
  const ids = new Map<number, string>();
  const entries = rows.map((row): Entry => {
    const message = messageIn(row);
    ids.set(numberIn(row, 'position'), message.id);
    return { message, after: ids.get(afterIn(row)) ?? null };
  });
  const positions = new Map(Array.from(ids, ([position, id]) => [id, position]));
  return { tree: { entries, head: ids.get(head) ?? null }, positions };
};

const replace = async (
  { rows }: Reader,
  { length }: Locked,
  { entries, head }: MessageTree,
  texts: Texts,
): Promise<void> => {
  await rows('removeAll');
  const positions = new Map<string, number>();
  await insert(rows, length, entries, texts, positions);
  await rows('update', length + entries.length, positionOf(head, positions));
};
