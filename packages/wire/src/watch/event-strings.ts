import { parsedJson } from 'millrace/values';

/** A string of an event, which may be a piece of a longer text, and where its JSON is in the body. */
export interface Piece {
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

/** The strings at the same place of each event: of the same names, and of the same `index`, such as that of a tool call. */
export interface Place {
  readonly name: string;
  /** Set once the last event of the same `index` says that it is complete. */
  readonly isDone: () => boolean;
  readonly pieces: readonly Piece[];
}

/**
 * Finds the strings of server-sent events, and of lines of JSON. Only tokens are read, so an event that is no valid JSON
 * has strings too. JSON strings contain no line break: each is in one line, also in an event of many lines. The time is
 * linear in the length of the body.
 */
export const placesIn = (body: string): readonly Place[] => {
  const places = createPlaces();
  const reader = createReader(places.add);
  const start = Math.max(0, body.search(/\S/u));
  let wasBreak = true;
  for (const { 0: line, index } of body.slice(start).matchAll(/[^\r\n]+|\r\n|\r|\n/gu)) {
    const isBreak = line.startsWith('\r') || line.startsWith('\n');
    // An empty line ends an event.
    if (isBreak && wasBreak) reader.end();
    else if (line.startsWith('data:')) reader.read(line, start + index, 5);
    else if (line.startsWith('{')) reader.read(line, start + index, 0);
    wasBreak = isBreak;
  }
  reader.end();
  return places.list;
};

/** An object or a list of an event. */
interface Holder {
  readonly isList: boolean;
  /** The name of the next value, or its place in the list. */
  name: string;
  count: number;
  isName: boolean;
  /** Its numbers such as `index`. */
  indexes: string;
  type: string;
  readonly strings: (readonly [name: string, piece: Piece])[];
  readonly inner: (readonly [name: string, holder: Holder])[];
}

/** Deeper strings are not joined. */
const deepest = 32;

/** Numbers that distinguish strings of the same names. Others, such as `chunk_index`, differ in each event. */
const isIndex = /^(?:(?:output|content|summary|block|choice|candidate|tool_?call)_?)?index$/iu;

const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]|[^\s"{}[\]:,]+|"/gu;

/** Reads the lines of events, and calls `take` with each event. */
const createReader = (take: (event: Holder) => void) => {
  let above: Holder[] = [];
  const open = (isList: boolean): void => {
    const [holder, outer] = [createHolder(isList), above.at(-1)];
    if (above.length <= deepest) outer?.inner.push([outer.name, holder]);
    above.push(holder);
  };
  const close = (): void => {
    const [event] = above;
    above.pop();
    if (event !== undefined && above.length === 0) take(event);
  };
  return {
    read: (line: string, at: number, start: number): void => {
      for (const { 0: token, index } of line.slice(start).matchAll(tokens)) {
        const holder = above.at(-1);
        // The rest of the line is a string without an end.
        if (token === '"') return;
        if (token === '{' || token === '[') open(token === '[');
        else if (token === '}' || token === ']') close();
        else if (holder !== undefined) addToken(holder, token, at + start + index);
      }
    },
    /** Ends an event, also one that is not complete. */
    end: (): void => {
      const [event] = above;
      above = [];
      if (event !== undefined) take(event);
    },
  };
};

const createHolder = (isList: boolean): Holder => ({
  ...{ isList, name: isList ? '0' : '', count: 0, isName: !isList, indexes: '', type: '' },
  ...{ strings: [], inner: [] },
});

const addToken = (holder: Holder, token: string, from: number): void => {
  if (token === ',') {
    holder.count += 1;
    holder.isName = !holder.isList;
    if (holder.isList) holder.name = String(holder.count);
  } else if (token === ':') {
    holder.isName = false;
  } else if (!token.startsWith('"')) {
    if (isIndex.test(holder.name)) holder.indexes += `${holder.name}=${token},`;
  } else {
    const text = parsedJson(token);
    if (typeof text !== 'string') return;
    if (holder.isName) holder.name = text;
    else holder.strings.push([holder.name, { text, from, to: from + token.length }]);
    if (holder.name === 'type' && !holder.isName) holder.type = text;
  }
};

/** A tree of names, so that a long name is kept once, however many strings are below it. */
interface Node {
  readonly inner: Map<string, Node>;
  pieces?: Piece[];
  isDone: boolean;
}

/** Types of events that end a string, such as `content_block_stop` and `response.output_text.done`. */
const isEnd = /(?:stop|\.done)$/u;

const createPlaces = () => {
  const list: Place[] = [];
  const top = createNode();
  const add = ({ indexes, strings, inner }: Holder, node: Node, given?: Node): Node => {
    const own = childOf(node, indexes);
    const root = given ?? own;
    for (const [name, piece] of strings) {
      const at = childOf(own, name);
      if (at.pieces === undefined) {
        at.pieces = [];
        list.push({ name, pieces: at.pieces, isDone: () => root.isDone });
      }
      at.pieces.push(piece);
    }
    for (const [name, holder] of inner) add(holder, childOf(own, name), root);
    return own;
  };
  return {
    list,
    add: (event: Holder): void => {
      add(event, top).isDone = isEnd.test(event.type);
    },
  };
};

const createNode = (): Node => ({ inner: new Map(), isDone: false });

const childOf = ({ inner }: Node, name: string): Node => {
  const known = inner.get(name);
  if (known !== undefined) return known;
  const node = createNode();
  inner.set(name, node);
  return node;
};
