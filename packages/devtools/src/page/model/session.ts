// The state of the page: what the feed has brought. One object, which grows; views read it after each change.
import type { Breakpoint, CallEntry, FeedLine, Hold, LayerEntry, LogItem } from '../protocol.js';
import { createRun, type Run } from './run.js';

/** `refused`: the server does not know the token, or there is no token. */
export type Connection = 'connecting' | 'open' | 'lost' | 'refused';

export interface Session {
  readonly title: string;
  readonly source: 'agents' | 'store' | 'file';
  readonly holdable: readonly string[];
  readonly breakpoints: readonly Breakpoint[];
  readonly holds: readonly Hold[];
  readonly notices: readonly string[];
  /** The newest first. */
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

type Data = 'title' | 'source' | 'holdable' | 'breakpoints' | 'holds' | 'notices' | 'calls';

type State = { -readonly [Field in Data]: Session[Field] };

/** The newest notices that are shown. */
const maxNotices = 4;

export const createSession = (): Session => {
  const callsById = new Map<string, CallEntry>();
  const runs = new Map<string, Run>();
  const layers = new Map<string, Map<string, readonly LayerEntry[]>>();
  const awaited = new Set<string>();
  const files = new Set<string>();
  let isNew = true;
  const state: State = {
    ...{ title: 'Millrace devtools', source: 'agents', holdable: [], breakpoints: [] },
    ...{ holds: [], notices: [], calls: [] },
  };
  const sort = (): void => {
    state.calls = [...callsById.values()].sort((a, b) => b.startedAt - a.startedAt);
  };
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
    callsById,
    runs,
    layers,
    take: (line) => {
      switch (line.line) {
        case 'hello': {
          isNew = true;
          const { title, source, holdable, breakpoints } = line;
          Object.assign(state, { title, source, holdable, breakpoints, holds: [] });
          for (const id of callsById.keys()) if (!files.has(id)) callsById.delete(id);
          awaited.clear();
          sort();
          return undefined;
        }
        case 'calls':
          for (const call of line.calls) callsById.set(call.id, call);
          sort();
          // Another process may answer now: it does not know the calls of the one before.
          if (isNew) for (const id of runs.keys()) if (!callsById.has(id)) runs.delete(id);
          isNew = false;
          return undefined;
        case 'removed':
          for (const id of line.ids) {
            callsById.delete(id);
            runs.delete(id);
            layers.delete(id);
          }
          sort();
          return undefined;
        case 'log':
          return append(line.id, line.from, line.items);
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
    },
    addFile: (entry, items) => {
      callsById.set(entry.id, entry);
      files.add(entry.id);
      const run = createRun();
      run.log.append(items);
      runs.set(entry.id, run);
      sort();
    },
    dismissNotice: (index) => {
      state.notices = state.notices.filter((_, at) => at !== index);
    },
  };
};

/** Whether a call has the words in its input, its answer, its agent or its status. */
export const hasWords = (call: CallEntry, words: string): boolean => {
  const { id, agent, input, answer, status, reason = '', sessionId = '' } = call;
  const text = [id, agent, input, answer, status, reason, sessionId].join('\n').toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/u)
    .every((word) => text.includes(word));
};
