// The state of the page: what the feed has brought. One object, which grows; views read it after each change.
import type { Breakpoint, CallEntry, FeedLine, Hold, LayerEntry, LogItem } from '../protocol.js';
import { inGroups } from './groups.js';
import { createRun, type Run } from './run.js';

/** `refused`: the server does not know the token, or there is no token. */
export type Connection = 'connecting' | 'open' | 'lost' | 'refused';

export interface Session {
  readonly title: string;
  readonly source: 'agents' | 'store' | 'file';
  readonly holdable: readonly string[];
  /** Of a store: the number of calls of a page of the list. */
  readonly pageSize: number | undefined;
  readonly breakpoints: readonly Breakpoint[];
  readonly holds: readonly Hold[];
  readonly notices: readonly string[];
  /** By conversation, the newest first. */
  readonly calls: readonly CallEntry[];
  readonly callsById: ReadonlyMap<string, CallEntry>;
  readonly runs: ReadonlyMap<string, Run>;
  /** The layers of the agents of calls, by the id of the root call and of the call. */
  readonly layers: ReadonlyMap<string, ReadonlyMap<string, readonly LayerEntry[]>>;
  /** Takes a line of the feed. Returns the id of a call whose log has a hole: ask for it again. */
  take(line: FeedLine): string | undefined;
  /** Shows a call of a file. */
  addFile(entry: CallEntry, items: readonly LogItem[]): void;
  dismissNotice(index: number): void;
}

type Data =
  'title' | 'source' | 'holdable' | 'pageSize' | 'breakpoints' | 'holds' | 'notices' | 'calls';

type State = { -readonly [Field in Data]: Session[Field] };

/** The newest notices that are shown. */
const maxNotices = 4;

export const createSession = (): Session => {
  const known = createKnown();
  const { state, callsById, runs, layers, addFile } = known;
  return {
    get title() {
      return state.title;
    },
    get source() {
      return state.source;
    },
    get holdable() {
      return state.holdable;
    },
    get pageSize() {
      return state.pageSize;
    },
    get breakpoints() {
      return state.breakpoints;
    },
    get holds() {
      return state.holds;
    },
    get notices() {
      return state.notices;
    },
    get calls() {
      return state.calls;
    },
    ...{ callsById, runs, layers, addFile },
    take: (line) => take(known, line),
    dismissNotice: (index) => {
      state.notices = state.notices.filter((_, at) => at !== index);
    },
  };
};

const take = (known: ReturnType<typeof createKnown>, line: FeedLine): string | undefined => {
  const { state, layers } = known;
  switch (line.line) {
    case 'hello':
      known.begin(line);
      return undefined;
    case 'calls':
      known.setCalls(line.calls);
      return undefined;
    case 'removed':
      known.remove(line.ids);
      return undefined;
    case 'log':
      return known.append(line.id, line.from, line.items);
    case 'layers': {
      const ofRoot = layers.get(line.id) ?? new Map<string, readonly LayerEntry[]>();
      layers.set(line.id, ofRoot.set(line.callId, line.layers));
      return undefined;
    }
    case 'holds':
      state.holds = line.holds;
      return undefined;
    case 'breakpoints':
      state.breakpoints = line.breakpoints;
      return undefined;
    case 'notice':
      state.notices = [...state.notices, line.text].slice(-maxNotices);
      return undefined;
  }
};

/** The state that the lines of the server change, and the files that were opened. */
const createKnown = () => {
  const callsById = new Map<string, CallEntry>();
  const layers = new Map<string, Map<string, readonly LayerEntry[]>>();
  const files = new Set<string>();
  let isNew = true;
  const state: State = {
    ...{ title: 'Millrace devtools', source: 'agents', holdable: [], breakpoints: [] },
    ...{ holds: [], notices: [], calls: [], pageSize: undefined },
  };
  const sort = (): void => {
    state.calls = inGroups(callsById.values());
  };
  const { runs, awaited, append } = createRuns();
  /** Another process may answer now: it does not know the calls of the one before. */
  const begin = (hello: LineOf<'hello'>): void => {
    const { title, source, holdable, breakpoints, pageSize } = hello;
    isNew = true;
    // Its holds come in the same batch: the editor of one that is still held stays as it is.
    Object.assign(state, { title, source, holdable, breakpoints, pageSize });
    for (const id of callsById.keys()) if (!files.has(id)) callsById.delete(id);
    awaited.clear();
    sort();
  };
  const setCalls = (calls: readonly CallEntry[]): void => {
    for (const call of calls) callsById.set(call.id, call);
    sort();
    if (isNew) for (const id of runs.keys()) if (!callsById.has(id)) runs.delete(id);
    isNew = false;
  };
  const remove = (ids: readonly string[]): void => {
    for (const id of ids) for (const known of [callsById, runs, layers]) known.delete(id);
    sort();
  };
  const addFile: Session['addFile'] = (entry, items) => {
    callsById.set(entry.id, entry);
    files.add(entry.id);
    const run = createRun();
    run.log.append(items);
    runs.set(entry.id, run);
    sort();
  };
  return { state, callsById, runs, layers, append, begin, setCalls, remove, addFile };
};

/** The logs of calls that are shown. */
const createRuns = () => {
  const runs = new Map<string, Run>();
  const awaited = new Set<string>();
  /** Returns the id of a call whose log has to be sent again, because a part of it is missing. */
  const append = (id: string, from: number, items: readonly LogItem[]): string | undefined => {
    const known = runs.get(id);
    if (from > 0 && known?.log.size !== from) {
      if (awaited.has(id)) return undefined;
      awaited.add(id);
      return id;
    }
    awaited.delete(id);
    const run = from === 0 || known === undefined ? createRun() : known;
    runs.set(id, run);
    run.log.append(items);
    return undefined;
  };
  return { runs, awaited, append };
};

type LineOf<Kind extends FeedLine['line']> = Extract<FeedLine, { readonly line: Kind }>;

/** Whether a call has the words in its input, its answer, its agent or its status. */
export const hasWords = (call: CallEntry, words: string): boolean => {
  const { id, agent, input, answer, status, reason = '', sessionId = '', userId = '' } = call;
  const text = [id, agent, input, answer, status, reason, sessionId, userId]
    .join('\n')
    .toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/u)
    .every((word) => text.includes(word));
};
