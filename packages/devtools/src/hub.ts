import type { Demand } from 'millrace';
import {
  BehaviorSubject,
  concatMap,
  defer,
  distinctUntilChanged,
  EMPTY,
  expand,
  filter,
  finalize,
  map,
  merge,
  type Observable,
  of,
  type SchedulerLike,
  startWith,
  Subject,
  throttleTime,
} from 'rxjs';
import { type CallLog, createCallLog } from './call-log.js';
import { createExchanges, type Exchanges } from './exchanges.js';
import { createHolds, type Holds } from './holds.js';
import type { CallEntry, FeedLine, LayerEntry } from './page/protocol.js';

/** The logs of calls, and the pages that watch them. */
export interface Hub {
  /** The number of pages: now, and whenever it changes. */
  readonly pages$: Observable<number>;
  readonly holds: Holds;
  readonly exchanges: Exchanges;
  readonly logs: ReadonlyMap<string, CallLog>;
  /** The log of a root call, created on first use. */
  log(id: string, known?: Partial<CallEntry>): CallLog;
  /** Sends a log again from its beginning. */
  restart(id: string): void;
  /** Shows what was added to a log. */
  changed(): void;
  remove(ids: readonly string[]): void;
  layers(id: string, callId: string, layers: readonly LayerEntry[]): void;
  notice(text: string): void;
  /** The feed of one page: batches of lines, while its demand is open. Cold. */
  page$(hello: FeedLine, demand: Demand): Observable<readonly FeedLine[]>;
}

const batchMs = 16;

/** Events, marks and deltas of a batch. */
const mostItems = 2_000;

export const createHub = (scheduler: SchedulerLike): Hub => {
  const logs = new Map<string, CallLog>();
  const open = new Set<Page>();
  const pages$ = new BehaviorSubject(0);
  const changes$ = new Subject<void>();
  const changed = (): void => {
    changes$.next();
  };
  const holds: Holds = createHolds(
    () => scheduler.now(),
    () => {
      for (const log of logs.values()) showHeld(log, holds.current);
      changed();
    },
  );
  const { notes, forget, layers, notice } = createNotes(changed);
  return {
    pages$: pages$.pipe(distinctUntilChanged()),
    holds,
    exchanges: createExchanges(),
    logs,
    log: (id, known) => {
      const log = logs.get(id) ?? createCallLog(id, known);
      logs.set(id, log);
      return log;
    },
    restart: (id) => {
      for (const page of open) page.restart(id);
      changed();
    },
    changed,
    remove: (ids) => {
      ids.forEach((id) => logs.delete(id));
      forget(ids);
      changed();
    },
    layers,
    notice,
    page$: (hello, demand) =>
      defer(() => {
        const page = createPage({ logs, notes, holds }, hello);
        open.add(page);
        pages$.next(open.size);
        return batches$(page, changes$, demand, scheduler).pipe(
          finalize(() => {
            open.delete(page);
            pages$.next(open.size);
          }),
        );
      }),
  };
};

/** Lines that every page gets once. */
const createNotes = (changed: () => void) => {
  const notes: FeedLine[] = [];
  const note = (line: FeedLine): void => {
    notes.push(line);
    changed();
  };
  return {
    notes,
    /** Removes what is about these calls. */
    forget: (ids: readonly string[]): void => {
      const isGone = (line: FeedLine): boolean => line.line === 'layers' && ids.includes(line.id);
      const left = notes.filter((line) => !isGone(line));
      notes.splice(0, notes.length, ...left);
    },
    layers: (id: string, callId: string, layers: readonly LayerEntry[]): void => {
      note({ line: 'layers', id, callId, layers });
    },
    notice: (text: string): void => {
      const isKnown = notes.some((line) => line.line === 'notice' && line.text === text);
      if (!isKnown) note({ line: 'notice', text });
    },
  };
};

/** Emits the lines that a page has not seen, up to 60 times a second, while its demand is open. */
const batches$ = (
  page: Page,
  changes$: Observable<void>,
  demand: Demand,
  scheduler: SchedulerLike,
): Observable<readonly FeedLine[]> => {
  const batch$ = defer(() => (demand.isOpen ? of(page.batch()) : EMPTY));
  return merge(changes$, demand.open$).pipe(
    startWith(undefined),
    throttleTime(batchMs, scheduler, { leading: true, trailing: true }),
    concatMap(() => batch$.pipe(expand(({ isMore }) => (isMore ? batch$ : EMPTY)))),
    map(({ lines }) => lines),
    filter((lines) => lines.length > 0),
  );
};

const showHeld = (log: CallLog, holds: Holds['current']): void => {
  const isHeld = holds.some(({ rootId }) => rootId === log.id);
  const { status } = log.entry;
  if (isHeld && status === 'running') log.set({ status: 'held' });
  if (!isHeld && status === 'held') log.set({ status: 'running' });
};

interface Shown {
  readonly logs: ReadonlyMap<string, CallLog>;
  readonly notes: readonly FeedLine[];
  readonly holds: Holds;
}

type Page = ReturnType<typeof createPage>;

/** The progress of one page. The logs are its queue, so a slow page needs no other. */
const createPage = ({ logs, notes, holds }: Shown, hello: FeedLine) => {
  const sent = new Map<string, CallEntry>();
  const places = new Map<string, number>();
  const noteLines = unsentNotes(notes);
  let isGreeted = false;
  const callLines = (): readonly FeedLine[] => {
    const calls = Array.from(logs.values(), ({ entry }) => entry).filter(
      (entry) => sent.get(entry.id) !== entry,
    );
    calls.forEach((entry) => {
      sent.set(entry.id, entry);
      if (entry.isOpen && !places.has(entry.id)) places.set(entry.id, 0);
    });
    const ids = [...sent.keys()].filter((id) => !logs.has(id));
    ids.forEach((id) => {
      sent.delete(id);
      places.delete(id);
    });
    return [
      ...(calls.length > 0 ? [{ line: 'calls', calls } as const] : []),
      ...(ids.length > 0 ? [{ line: 'removed', ids } as const] : []),
    ];
  };
  const logLines = (): readonly FeedLine[] => {
    let left = mostItems;
    return [...places].flatMap(([id, from]): readonly FeedLine[] => {
      const log = logs.get(id);
      if (log === undefined || left <= 0 || from >= log.length) return [];
      const to = Math.min(log.length, from + left);
      left -= to - from;
      places.set(id, to);
      return [{ line: 'log', id, from, items: log.slice(from, to - from) }];
    });
  };
  const holdLines = unsentHolds(holds);
  return {
    restart: (id: string): void => {
      if (places.has(id)) places.set(id, 0);
    },
    batch: (): { readonly lines: readonly FeedLine[]; readonly isMore: boolean } => {
      const greeting = isGreeted ? [] : [hello];
      isGreeted = true;
      const lines = [...greeting, ...callLines(), ...noteLines(), ...logLines(), ...holdLines()];
      const isMore = [...places].some(([id, place]) => place < (logs.get(id)?.length ?? 0));
      return { lines, isMore };
    },
  };
};

/** Returns the notes that were not returned before. */
const unsentNotes = (notes: readonly FeedLine[]) => {
  const sent = new WeakSet<FeedLine>();
  return (): readonly FeedLine[] => {
    const fresh = notes.filter((note) => !sent.has(note));
    fresh.forEach((note) => sent.add(note));
    return fresh;
  };
};

/** Returns what is held, at first and after a change, and the breakpoints after a change. */
const unsentHolds = (holds: Holds) => {
  let sentHolds: Holds['current'] | undefined;
  let sentBreakpoints = holds.breakpoints;
  return (): readonly FeedLine[] => {
    const { current, breakpoints } = holds;
    const lines: readonly FeedLine[] = [
      ...(current === sentHolds ? [] : [{ line: 'holds', holds: current } as const]),
      ...(breakpoints === sentBreakpoints ? [] : [{ line: 'breakpoints', breakpoints } as const]),
    ];
    sentHolds = current;
    sentBreakpoints = breakpoints;
    return lines;
  };
};
