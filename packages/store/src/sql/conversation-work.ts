import type { AppendOptions, Entry, MessageTree } from 'millrace';
import { chained, unknownPlace, withoutBelow } from 'millrace/values';
import { jsonOf, packed, parseMessage } from '../memory/stored-messages.js';
import { parseStoredName, storedName } from '../stored-name.js';
import type {
  ConversationTable,
  EntryText,
  HeadChange,
  MessageText,
} from './conversation-table.js';
import type { Row } from './sql.js';
import { numberIn, textIn, toSqlText } from './text.js';
import { rowsOf, type Statement, type Work } from './work.js';

export interface NewMessage {
  readonly position: number;
  readonly name: string;
  readonly text: string;
  /** The position of the message before it; null if that is the one at the position before. */
  readonly after: number | null;
}

/** The statements that read and change a conversation, whose key is their first value. */
export interface ConversationStatements extends StatementTexts {
  /** Inserts messages with adjacent positions. */
  readonly insert: (key: string, messages: readonly NewMessage[]) => Iterable<Statement>;
}

type StatementTexts = Readonly<
  Record<
    | 'load'
    | 'loadAt'
    | 'isOnPath'
    | 'head'
    | 'find'
    | 'findBeginning'
    | 'siblings'
    | 'first'
    | 'all'
    | 'outline'
    | 'lock'
    | 'update'
    | 'remove'
    | 'removeAll',
    string
  >
>;

/** The functions of `ConversationTable`, as statements of one transaction. */
export type ConversationWork = {
  readonly [Name in keyof ConversationTable]: (
    ...given: Parameters<ConversationTable[Name]>
  ) => Work<Awaited<ReturnType<ConversationTable[Name]>>>;
};

/** A conversation is one row, with one row for each message. Of two appends after the same message, the second makes a branch. */
export const conversationWork = (
  statements: ConversationStatements,
  key: string,
  sessionId: string,
): ConversationWork => {
  const reader = readerOf(statements, key);
  function* locked<T>(work: (locked: Locked) => Work<T>): Work<T> {
    const [row = {}] = yield* reader.rows('lock', toSqlText(sessionId));
    return yield* work({ length: numberIn(row, 'length'), head: numberIn(row, 'last') });
  }
  return {
    load: (at) => load(reader, at),
    last: (at) => last(reader, at),
    append: (messages, options) => locked((it) => append(reader, it, messages, options)),
    branches: (at) => branches(reader, at),
    moveHead: (to) => locked((it) => moveHead(reader, it, to)),
    remove: (at) => locked((it) => remove(reader, it, at)),
    all: () => all(reader),
    replace: (entries, head) => locked((it) => replace(reader, it, entries, head)),
  };
};

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
    statement: keyof StatementTexts,
    ...values: readonly unknown[]
  ) => Work<readonly Row[]>;
  readonly insert: (messages: readonly NewMessage[]) => Iterable<Statement>;
  /** The messages with these ids, and the one at a position. */
  readonly find: (ids: readonly string[], position?: number) => Work<readonly Found[]>;
  readonly idAt: (position: number) => Work<string | null>;
  readonly headId: () => Work<string | null>;
  /** The message with an id, or the last one of the call with that id. Throws `conflict` if both are unknown. */
  readonly locate: (at: string, known?: readonly Found[]) => Work<Found>;
}

const readerOf = (statements: ConversationStatements, key: string): Reader => {
  const rows: Reader['rows'] = (statement, ...values) =>
    rowsOf(statements[statement], key, ...values);
  function* find(ids: readonly string[], position = 0): Work<readonly Found[]> {
    return (yield* rows('find', ids.map(storedName), position)).map(foundIn);
  }
  function* headId(): Work<string | null> {
    return (yield* rows('head')).map(foundIn)[0]?.id ?? null;
  }
  return {
    rows,
    insert: (messages) => statements.insert(key, messages),
    find,
    headId,
    *idAt(position) {
      return (yield* find([], position))[0]?.id ?? null;
    },
    *locate(at, known) {
      const exact = (known ?? (yield* find([at]))).find(({ id }) => id === at);
      if (exact !== undefined) return exact;
      const name = storedName(`${at}/`);
      // The names of long ids do not begin with the ids.
      const beginning = name.startsWith('i-') ? name : 'h-';
      const candidates = (yield* rows('findBeginning', beginning)).map(foundIn);
      const end = candidates.find(({ id }) => id.startsWith(`${at}/`));
      if (end === undefined) throw unknownPlace(at, yield* headId());
      return end;
    },
  };
};

const foundIn = (row: Row): Found => ({
  id: idIn(row),
  position: numberIn(row, 'position'),
  after: afterIn(row),
});

const idIn = (row: Row): string =>
  parseStoredName(textIn(row, 'id')) ?? parseMessage(textIn(row, 'message')).id;

const afterIn = (row: Row): number =>
  row['after'] === null ? numberIn(row, 'position') - 1 : numberIn(row, 'after');

function* load(
  { rows, locate, headId }: Reader,
  at: string | null | undefined,
): Work<readonly string[]> {
  if (at === null) return [];
  const pathTo = (id: string): Work<readonly Row[]> => rows('loadAt', storedName(id));
  const exact = at === undefined ? yield* rows('load') : yield* pathTo(at);
  const isExact = at === undefined || exact.length > 0;
  const path = isExact ? exact : yield* pathTo((yield* locate(at)).id);
  if (at !== undefined && path.length === 0) throw unknownPlace(at, yield* headId());
  return path.map((row) => textIn(row, 'message'));
}

function* last({ headId, locate }: Reader, at: string | null | undefined): Work<string | null> {
  if (at === undefined) return yield* headId();
  return at === null ? null : (yield* locate(at)).id;
}

function* append(
  reader: Reader,
  { length, head }: Locked,
  messages: readonly MessageText[],
  { after: given, replaces }: AppendOptions,
): Work<{ readonly after: string | null; readonly head: HeadChange }> {
  const { rows, find, idAt, locate } = reader;
  const named = [given, replaces].filter((id) => typeof id === 'string');
  const known = yield* find([...messages.map(({ id }) => id), ...named], head);
  const positions = new Map(known.map(({ id, position }) => [id, position]));
  const headId = known.find(({ position }) => position === head)?.id ?? null;
  const end = typeof given === 'string' ? yield* locate(given, known) : undefined;
  if (end !== undefined) positions.set(end.id, end.position);
  const before = given === undefined ? headId : (end?.id ?? null);
  const isKnown = new Map(known.map(({ id }) => [id, null]));
  const { added, last: lastId } = chained(
    messages.map(({ id, json }) => packed(id, json)),
    isKnown,
    before,
  );
  const former = known.find(({ id }) => id === messages[0]?.id);
  const after = former === undefined ? before : yield* idAt(former.after);
  const [first] = added;
  if (first === undefined) return { after, head: { from: headId, to: headId } };
  const top = replaces === undefined ? undefined : positions.get(replaces);
  const isReplaced = top !== undefined && (yield* rows('isOnPath', head, top)).length > 0;
  const isMoved = first.after === headId || isReplaced;
  yield* insert(reader, length, added.map(entryText), positions);
  const to = isMoved ? lastId : headId;
  yield* rows('update', length + added.length, positionOf(to, positions));
  return { after, head: { from: headId, to } };
}

const entryText = ({ message, after }: Entry): EntryText => ({
  id: message.id,
  json: jsonOf(message),
  after,
});

/** Inserts entries after a position, and adds theirs to `positions`. */
function* insert(
  { insert: insertStatements }: Reader,
  length: number,
  entries: readonly EntryText[],
  positions: Map<string, number>,
): Work<void> {
  const messages = entries.map(({ id, json, after }, index): NewMessage => {
    const position = length + 1 + index;
    positions.set(id, position);
    const before = positionOf(after, positions);
    return {
      position,
      name: storedName(id),
      text: toSqlText(json),
      after: before === position - 1 ? null : before,
    };
  });
  for (const statement of insertStatements(messages)) yield statement;
}

/** The position of a message, 0 for the beginning. */
const positionOf = (id: string | null, positions: ReadonlyMap<string, number>): number =>
  id === null ? 0 : (positions.get(id) ?? 0);

function* branches({ rows, locate }: Reader, at: string): Work<readonly string[]> {
  const { position, after } = yield* locate(at);
  const [row = {}] = yield* rows('first');
  const first = numberIn(row, 'position');
  const siblings =
    after === 0 || position === first
      ? yield* rows('siblings', 0, first)
      : yield* rows('siblings', after, after + 1);
  return siblings.map((sibling) => foundIn(sibling).id);
}

function* moveHead(
  { rows, idAt, locate }: Reader,
  { length, head }: Locked,
  to: string,
): Work<HeadChange> {
  const { id, position } = yield* locate(to);
  const before = yield* idAt(head);
  if (position !== head) yield* rows('update', length, position);
  return { from: before, to: id };
}

function* remove(
  { rows }: Reader,
  { length, head }: Locked,
  at: string,
): Work<{ readonly removed: readonly string[]; readonly head: HeadChange }> {
  const { tree, positions } = treeOf(yield* rows('outline'), head);
  const left = withoutBelow(tree, at);
  const isLeft = new Set(left.entries.map(({ message }) => message.id));
  const removed = [...positions.keys()].filter((id) => !isLeft.has(id));
  yield* rows(
    'remove',
    removed.map((id) => positions.get(id)),
  );
  yield* rows('update', length, positionOf(left.head, positions));
  return { removed, head: { from: tree.head, to: left.head } };
}

function* all({ rows }: Reader): Work<{
  readonly entries: readonly EntryText[];
  readonly head: string | null;
}> {
  const found = yield* rows('all');
  const [row] = found;
  if (row === undefined || row['position'] === null) return { entries: [], head: null };
  const { tree } = treeOf(found, numberIn(row, 'last'));
  return { entries: tree.entries.map(entryText), head: tree.head };
}

/** The tree of rows in the order of their positions, with packed messages. */
const treeOf = (
  rows: readonly Row[],
  head: number,
): { readonly tree: MessageTree; readonly positions: ReadonlyMap<string, number> } => {
  const ids = new Map<number, string>();
  const entries = rows.map((row): Entry => {
    const id = idIn(row);
    ids.set(numberIn(row, 'position'), id);
    return { message: packed(id, textIn(row, 'message')), after: ids.get(afterIn(row)) ?? null };
  });
  const positions = new Map(Array.from(ids, ([position, id]) => [id, position]));
  return { tree: { entries, head: ids.get(head) ?? null }, positions };
};

function* replace(
  reader: Reader,
  { length }: Locked,
  entries: readonly EntryText[],
  head: string | null,
): Work<void> {
  yield* reader.rows('removeAll');
  const positions = new Map<string, number>();
  yield* insert(reader, length, entries, positions);
  yield* reader.rows('update', length + entries.length, positionOf(head, positions));
}
