// The list of calls: search, filters, and the choice of the call that is shown and of the one beside it.
import { useEffect, useRef, useState } from 'preact/hooks';
import { durationText } from '../model/axis.js';
import { hasWords } from '../model/session.js';
import type { CallEntry } from '../protocol.js';
import { exportCall, importCall } from './files.js';
import { IconButton } from './icons.js';
import { countText, selectCall, useDevtools, useSize } from './state.js';

const filters = ['all', 'running', 'held', 'suspended', 'done', 'failed', 'stopped'] as const;

const rowHeight = 58;
const overscan = 3;

export const Calls = ({ shown }: { readonly shown: CallEntry | undefined }) => {
  const { session, client, set, send } = useDevtools();
  const [words, setWords] = useState('');
  const [status, setStatus] = useState<(typeof filters)[number]>('all');
  const [found, setFound] = useState<ReadonlySet<string>>(new Set());
  const query = words.trim();
  // Three letters are enough for the server to search the logs.
  useEffect(() => {
    setFound(new Set());
    if (query.length < 3) return undefined;
    const timer = setTimeout(
      () => send(client.search$(query), (ids) => setFound(new Set(ids))),
      250,
    );
    return () => {
      clearTimeout(timer);
    };
  }, [query]);
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
  `${shown === all ? '' : `${shown} of `}${all} call${all === 1 ? '' : 's'}`;

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
  const first = Math.max(0, Math.floor(top / rowHeight) - overscan);
  const visible = calls.slice(first, Math.ceil((top + height) / rowHeight) + overscan);
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
        <div style={{ height: `${calls.length * rowHeight}px` }} class="height">
          <div
            role="list"
            aria-label="Calls"
            class="layer"
            style={{ top: `${first * rowHeight}px` }}
          >
            {visible.map((call) => (
              <CallRow key={call.id} call={call} isShown={call.id === shown?.id} select={select} />
            ))}
          </div>
        </div>
      )}
    </div>
  );
};

const CallRow = (props: {
  readonly call: CallEntry;
  readonly isShown: boolean;
  readonly select: (id: string) => void;
}) => {
  const { ui, set } = useDevtools();
  const { call, isShown } = props;
  const { id, input, agent, status, reason, startedAt, endedAt, tokens, cost, forkedFrom } = call;
  const isCompared = ui.compared === id;
  const duration = endedAt === undefined ? '' : ` · ${durationText(endedAt - startedAt)}`;
  return (
    <div role="listitem" class={isShown ? 'call shown' : 'call'} data-call={id}>
      <button
        type="button"
        class="call-main"
        aria-current={isShown}
        onClick={() => props.select(id)}
      >
        <span class="call-input">{input || id}</span>
        <span class="call-facts">
          <span class={`status ${status}`}>{status}</span>
          <span class="call-detail">
            {forkedFrom === undefined ? '' : 'fork · '}
            {agent}
            {reason === undefined || reason === 'answer' ? '' : ` · ${reason}`}
            {duration}
            {tokens > 0 ? ` · ${countText(tokens)} tok` : ''}
            {cost === undefined ? '' : ` · ${cost}`}
          </span>
        </span>
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
