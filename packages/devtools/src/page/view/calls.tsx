// The list of calls: search, filters, and the choice of the call that is shown and of the one beside it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { durationText } from '../model/axis.js';
import { type ListRow, rowsBetween, rowsOfCalls, timeOfDay } from '../model/groups.js';
import { hasWords } from '../model/session.js';
import type { CallEntry } from '../protocol.js';
import { exportCall, importCall } from './files.js';
import { IconButton } from './icons.js';
import { counted, countText, selectCall, useDevtools, useSize } from './state.js';

const filters = ['all', 'running', 'held', 'suspended', 'done', 'failed', 'stopped'] as const;

/** Pixels above and below the visible rows. */
const overscan = 200;

export const Calls = ({ shown }: { readonly shown: CallEntry | undefined }) => {
  const { session, set } = useDevtools();
  const [words, setWords] = useState('');
  const [status, setStatus] = useState<(typeof filters)[number]>('all');
  const query = words.trim();
  const { found, until, searchOlder } = useSearch(query);
  const calls = session.calls.filter(
    (call) =>
      (status === 'all' || call.status === status) &&
      (query === '' || hasWords(call, query) || found.has(call.id)),
  );
  const select = (id: string) => {
    set(selectCall(id));
  };
  return (
    <section class="calls" aria-label="Calls">
      <div class="search">
        <input
          id="search"
          type="search"
          placeholder="Search ( / )"
          aria-label="Search calls and logs"
          value={words}
          onInput={({ currentTarget }) => setWords(currentTarget.value)}
        />
        <select
          aria-label="Status"
          value={status}
          onChange={({ currentTarget }) =>
            setStatus(filters.find((it) => it === currentTarget.value) ?? 'all')
          }
        >
          {filters.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <CallList calls={calls} shown={shown} select={select} />
      {until !== undefined && (
        <button type="button" class="more older" onClick={searchOlder}>
          Search older calls
        </button>
      )}
      {query === '' && <Older />}
      <footer class="calls-foot">
        <span>{numberText(calls.length, session.calls.length)}</span>
        <IconButton
          icon="download"
          label="Export this call"
          isDisabled={shown === undefined}
          act={() => {
            if (shown !== undefined) exportCall(shown, session.runs.get(shown.id));
          }}
        />
        <IconButton
          icon="upload"
          label="Import a call"
          act={() => {
            importCall((entry, items) => {
              session.addFile(entry, items);
              select(entry.id);
            });
          }}
        />
      </footer>
    </section>
  );
};

const numberText = (shown: number, all: number): string =>
  `${shown === all ? '' : `${shown} of `}${counted(all, 'call')}`;

const nothing: { readonly found: ReadonlySet<string>; readonly until?: number } = {
  found: new Set(),
};

/** The calls whose logs have the words. The server searches a part of a store, and older calls when it is asked to. */
const useSearch = (query: string) => {
  const { client, send } = useDevtools();
  const [result, setResult] = useState(nothing);
  const cancel = useRef<() => void>(() => undefined);
  const search = (known: ReadonlySet<string>, from?: number): void => {
    cancel.current();
    cancel.current = send(client.search$(query, from), ({ ids, until }) =>
      setResult({ found: new Set([...known, ...ids]), ...(until !== undefined && { until }) }),
    );
  };
  // Three letters are enough for the server to search the logs.
  useEffect(() => {
    setResult(nothing);
    if (query.length < 3) return undefined;
    const timer = setTimeout(() => search(new Set()), 250);
    return () => {
      clearTimeout(timer);
      cancel.current();
    };
  }, [query]);
  return { ...result, searchOlder: () => search(result.found, result.until) };
};

/** Lists older calls of a store. */
const Older = () => {
  const { session, client, send } = useDevtools();
  const [isEnd, setEnd] = useState(false);
  const { pageSize, calls } = session;
  if (pageSize === undefined || calls.length < pageSize || isEnd) return null;
  return (
    <button
      type="button"
      class="more older"
      onClick={() => send(client.older$, (isMore) => setEnd(!isMore))}
    >
      Show {pageSize} older calls
    </button>
  );
};

interface CallListProps {
  readonly calls: readonly CallEntry[];
  readonly shown: CallEntry | undefined;
  readonly select: (id: string) => void;
}

const CallList = ({ calls, shown, select }: CallListProps) => {
  const { session } = useDevtools();
  const ref = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const { height } = useSize(ref);
  const rows = rowsOfCalls(calls);
  const visible = rowsBetween(rows, top - overscan, top + height + overscan);
  const last = rows.at(-1);
  return (
    <div
      class="call-list"
      ref={ref}
      onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
      tabIndex={-1}
    >
      {calls.length === 0 ? (
        <p class="empty">{session.calls.length === 0 ? 'No calls yet.' : 'No matching calls.'}</p>
      ) : (
        <div
          style={{ height: `${last === undefined ? 0 : last.top + last.height}px` }}
          class="height"
        >
          <div
            role="list"
            aria-label="Calls"
            class="layer"
            style={{ top: `${visible[0]?.top ?? 0}px` }}
          >
            {visible.map((row) =>
              row.type === 'group' ? (
                <GroupRow key={`group ${row.sessionId}`} row={row} />
              ) : (
                <CallRow
                  key={row.call.id}
                  {...{ row, call: row.call, select }}
                  isShown={row.call.id === shown?.id}
                />
              ),
            )}
          </div>
        </div>
      )}
    </div>
  );
};

const GroupRow = ({ row }: { readonly row: Extract<ListRow, { type: 'group' }> }) => {
  const { sessionId, userId, count, height } = row;
  const text = [`${count} calls`, `session ${sessionId}`, userId].filter(Boolean).join(' · ');
  return (
    <div role="listitem" class="group-row" style={{ height: `${height}px` }} title={text}>
      {text}
    </div>
  );
};

const CallRow = (props: {
  readonly row: Extract<ListRow, { type: 'call' }>;
  readonly call: CallEntry;
  readonly isShown: boolean;
  readonly select: (id: string) => void;
}) => {
  const { ui, set } = useDevtools();
  const { call, isShown, row } = props;
  const { id, input, agent, status, reason, startedAt, endedAt, tokens, cost, forkedFrom } = call;
  const { failedTools = 0 } = call;
  const isCompared = ui.compared === id;
  const duration = endedAt === undefined ? '' : ` · ${durationText(endedAt - startedAt)}`;
  return (
    <div
      role="listitem"
      class={isShown ? 'call shown' : 'call'}
      style={{ height: `${row.height}px` }}
      data-call={id}
    >
      <button
        type="button"
        class="call-main"
        aria-current={isShown}
        onClick={() => props.select(id)}
      >
        <span class="call-input">{input || id}</span>
        <span class="call-facts">
          <span class={`status ${status}`}>{status}</span>
          {failedTools > 0 && (
            <span class="status failed">{counted(failedTools, 'tool')} failed</span>
          )}
          <span class="call-detail">
            {startedAt > 0 ? `${timeOfDay(startedAt, Date.now())} · ` : ''}
            {forkedFrom === undefined ? '' : 'fork · '}
            {agent}
            {reason === undefined || reason === 'answer' ? '' : ` · ${reason}`}
            {duration}
            {tokens > 0 ? ` · ${countText(tokens)} tok` : ''}
            {cost === undefined ? '' : ` · ${cost}`}
          </span>
        </span>
        {row.labels.length > 0 && <span class="call-detail">{row.labels.join(' · ')}</span>}
      </button>
      {!isShown && (
        <button
          type="button"
          class="compare"
          aria-pressed={isCompared}
          aria-label={`Compare with: ${input || id}`}
          title="Compare with the shown call"
          onClick={() =>
            set({
              compared: isCompared ? undefined : id,
              tab: isCompared ? 'conversation' : 'difference',
            })
          }
        >
          ⇄
        </button>
      )}
    </div>
  );
};
