// The page: calls, the marble diagram of one or two of them, and details.
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { createJoins } from '../model/compare.js';
import { runAxis, type Run, turnFrom } from '../model/run.js';
import type { Connection, Session } from '../model/session.js';
import type { CallEntry } from '../protocol.js';
import { Calls } from './calls.js';
import { Diagram } from './diagram.js';
import { differenceIn, usePairs } from './difference.js';
import { Help, Settings } from './dialogs.js';
import { EmptyState, Refused } from './empty.js';
import { ForkForm } from './fork-form.js';
import { HoldPanel } from './holds.js';
import { IconButton } from './icons.js';
import { CopyButton } from './requests.js';
import type { DiagramRun } from './rows.js';
import { Side, tabs } from './side.js';
import {
  type Devtools,
  DevtoolsContext,
  isTyping,
  selectCall,
  useKeys,
  usePlayback,
} from './state.js';
import { Toolbar } from './toolbar.js';
import { type Viewport, zoomed } from './viewport.js';

export interface AppProps extends Devtools {
  readonly connection: Connection;
}

export const App = (props: AppProps) => {
  const { session, ui, connection } = props;
  if (connection === 'refused' && session.calls.length === 0) return <Refused />;
  const call =
    (ui.selected === undefined ? undefined : session.callsById.get(ui.selected)) ??
    session.calls[0];
  return (
    <DevtoolsContext.Provider value={props}>
      <Page {...props} call={call} />
    </DevtoolsContext.Provider>
  );
};

const Page = (props: AppProps & { readonly call: CallEntry | undefined }) => {
  const { session, ui, latest, set, connection, call } = props;
  const viewport = useRef<Viewport>({ width: 800, scale: 1, left: 0, length: 1, focus: 400 });
  const aligned = useRuns(props, call);
  const pairs = usePairs(aligned.map((one) => one.run));
  const runs = aligned.map((one) => ({ ...one, differsAt: differenceIn(one.run, pairs) }));
  const shown = runs.find(({ id }) => id === call?.id);
  const shownRun = shown?.run;
  const other = session.callsById.get(ui.compared ?? '');
  useLog(props, call?.id);
  useLog(props, other?.id);
  useLog(props, call?.forkedFrom?.callId);
  useLog(props, other?.forkedFrom?.callId);
  usePlayback(shownRun, props);
  const go = useCallback(
    (position: number | undefined) => {
      const size = shownRun?.log.size ?? 0;
      const isEnd = position !== undefined && position >= size;
      set({
        position: isEnd ? undefined : position,
        isPlaying: false,
        ...windowAt(shownRun, position, ui.isCompressed, viewport.current),
      });
    },
    [shownRun, ui.isCompressed],
  );
  const turn = (direction: -1 | 1) => {
    if (shownRun !== undefined)
      go(turnFrom(shownRun, latest().position ?? shownRun.log.size, direction));
  };
  const play = () =>
    set(ui.isPlaying ? { isPlaying: false } : { isPlaying: true, position: ui.position ?? 0 });
  useShortcuts({ ...props, viewport, run: shownRun, runId: shown?.id, go, turn, play });
  const { fork } = ui;
  // It stays while it is prepared, also if the page shows another call.
  const forking = useRef<DiagramRun | undefined>(undefined);
  if (forking.current?.id !== fork?.callId)
    forking.current = runs.find(({ id }) => id === fork?.callId);
  const isRunning = call?.status === 'running';
  const isPlain = runs.length === 1 && session.holds.length === 0 && hasFewLanes(shownRun);
  return (
    <div class={isPlain ? 'app plain' : 'app'}>
      <Toolbar
        run={shownRun}
        viewport={viewport}
        connection={connection}
        go={go}
        turn={turn}
        play={play}
      />
      <Notices session={session} set={set} isRefused={connection === 'refused'} />
      <Calls shown={call} />
      <main class="center">
        {call === undefined ? (
          <EmptyState source={session.source} />
        ) : (
          <>
            <CallHead {...props} call={call} />
            {runs.length > 0 ? (
              <Diagram runs={runs} viewport={viewport} isRunning={isRunning} />
            ) : (
              <p class="empty">
                Loading the log …
                {call.forkedFrom === undefined ? '' : ' A fork that could not be run has none.'}
              </p>
            )}
          </>
        )}
        <HoldPanel shownId={call?.id} />
      </main>
      <Side runs={runs} call={call} pairs={pairs} />
      {ui.dialog === 'help' && <Help />}
      {ui.dialog === 'settings' && <Settings />}
      {fork !== undefined && forking.current !== undefined && (
        <ForkForm run={forking.current.run} {...fork} />
      )}
    </div>
  );
};

/** Up to so many lanes, the conversation says more than the diagram, and gets the room. */
const fewLanes = 4;

const hasFewLanes = (run: Run | undefined): boolean => {
  const root = run?.lanes.root;
  if (root === undefined || root.children.length > 0) return false;
  return root.lanes.filter(({ kind }) => kind !== 'steps').length <= fewLanes;
};

/** A window in which the position is visible. */
const windowAt = (
  run: Run | undefined,
  position: number | undefined,
  isCompressed: boolean,
  { left, width, scale }: Viewport,
) => {
  if (run === undefined || position === undefined) return { left: undefined };
  const x = runAxis(run, isCompressed).toAxis(run.log.timeAt(position - 1)) * scale;
  return x >= left && x <= left + width ? {} : { left: (x - width / 2) / scale };
};

/** Asks for a log that the page does not have. */
const useLog = ({ session, client, send }: Devtools, id: string | undefined): void => {
  const entry = id === undefined ? undefined : session.callsById.get(id);
  const isMissing = entry !== undefined && !entry.isOpen && !session.runs.has(entry.id);
  useEffect(() => {
    if (isMissing && id !== undefined) send(client.open$(id));
  }, [id, isMissing]);
};

/** The shown run and the one beside it, on one axis: an original before its fork. */
const useRuns = ({ session, ui }: Devtools, call: CallEntry | undefined): readonly DiagramRun[] => {
  const runOf = useRef(createJoins()).current;
  const other = ui.compared === call?.id ? undefined : session.callsById.get(ui.compared ?? '');
  const isCompressed = ui.isCompressed && other === undefined;
  const shown = (
    entry: CallEntry | undefined,
    beside: CallEntry | undefined,
    letter: string,
  ): DiagramRun | undefined => {
    const whole = entry && runOf(session, entry.id);
    if (entry === undefined || whole === undefined) return undefined;
    const { run, joined } = whole;
    const hasForked = beside?.forkedFrom?.callId === entry.id;
    const isFork = entry.forkedFrom?.callId === beside?.id;
    const fork = hasForked ? runOf(session, beside.id)?.joined : undefined;
    return {
      ...{ id: entry.id, run, axis: runAxis(run, isCompressed), differsAt: undefined },
      title: beside && (hasForked ? 'Original' : isFork ? 'Fork' : letter),
      position: entry === call ? ui.position : undefined,
      forkedAt: joined?.forkedAt ?? fork?.forkedAt,
      keptUntil: joined?.keptUntil ?? 0,
    };
  };
  const own = shown(call, other, 'A');
  const beside = shown(other, call, 'B');
  if (own === undefined) return [];
  if (beside === undefined) return [{ ...own, title: undefined }];
  return beside.title === 'Original' ? [beside, own] : [own, beside];
};

const CallHead = ({ call, client, send, ui, set }: Devtools & { readonly call: CallEntry }) => (
  <div class="call-head">
    <h2 title={call.id}>{call.input || call.id}</h2>
    <span class={`status ${call.status}`}>{call.status}</span>
    {call.forkedFrom !== undefined && ui.compared !== call.forkedFrom.callId && (
      <button
        type="button"
        class="link"
        onClick={() => set({ compared: call.forkedFrom?.callId, tab: 'difference' })}
      >
        Fork at {call.forkedFrom.at}: compare
      </button>
    )}
    {ui.compared !== undefined && (
      <button type="button" onClick={() => set({ compared: undefined, tab: 'conversation' })}>
        End the comparison
      </button>
    )}
    <CopyButton
      key={call.id}
      label="Copy link"
      text={() => location.origin + location.pathname + client.linkTo(call.id)}
    />
    {(call.status === 'running' || call.status === 'held') && (
      <button type="button" class="danger" onClick={() => send(client.interrupt$(call.id))}>
        Interrupt
      </button>
    )}
  </div>
);

const Notices = (props: {
  readonly session: Session;
  readonly set: Devtools['set'];
  readonly isRefused: boolean;
}) => {
  const { session, set, isRefused } = props;
  return (
    <div class="notices" role="log" aria-label="Notices">
      {isRefused && (
        <p class="notice-line">
          The server refuses the token: the program was started again. Open the address that it has
          printed.
        </p>
      )}
      {session.notices.map((text, index) => (
        <p key={text} class="notice-line">
          {text}
          <IconButton
            icon="cross"
            label="Dismiss"
            act={() => {
              session.dismissNotice(index);
              set({});
            }}
          />
        </p>
      ))}
    </div>
  );
};

// ---------------------------------------------------------------- keys

interface ShortcutProps extends Devtools {
  readonly viewport: { readonly current: Viewport };
  readonly run: Run | undefined;
  readonly runId: string | undefined;
  readonly go: (position: number | undefined) => void;
  readonly turn: (direction: -1 | 1) => void;
  readonly play: () => void;
}

const useShortcuts = (props: ShortcutProps): void => {
  useKeys((event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event))
      return;
    const isButton =
      event.target instanceof HTMLElement &&
      event.target.closest('button, [role=tab], [role=button]') !== null;
    if (isButton && (event.key === 'Enter' || event.key === ' ')) return;
    const act = actionOf(event, props);
    if (act === undefined) return;
    event.preventDefault();
    act();
  });
};

const actionOf = (
  { key, shiftKey }: KeyboardEvent,
  props: ShortcutProps,
): (() => void) | undefined => {
  const { session, latest, set, run, runId, go, turn, play, viewport } = props;
  const ui = latest();
  const position = ui.position ?? run?.log.size ?? 0;
  const select = (step: number) => () => {
    const index = session.calls.findIndex(({ id }) => id === (ui.selected ?? session.calls[0]?.id));
    const next = session.calls[index + step];
    if (next !== undefined) set(selectCall(next.id));
  };
  switch (key) {
    case 'ArrowLeft':
      return shiftKey ? () => turn(-1) : () => go(Math.max(0, position - 1));
    case 'ArrowRight':
      return shiftKey ? () => turn(1) : () => go(position + 1);
    case 'ArrowUp':
    case 'k':
      return select(-1);
    case 'ArrowDown':
    case 'j':
      return select(1);
    case ' ':
      return play;
    case 'l':
      return () => go(undefined);
    case 'f':
      return () => set({ scale: undefined, left: undefined });
    case 'g':
      return () => set({ isCompressed: !ui.isCompressed });
    case '+':
    case '=':
      return () => set(zoomed(viewport.current, 1.5));
    case '-':
      return () => set(zoomed(viewport.current, 1 / 1.5));
    case 'Enter':
      return runId === undefined
        ? undefined
        : () =>
            set({
              chosen: { runId, position: position - 1, until: position - 1, kind: '' },
              tab: 'inspector',
            });
    case '/':
      return () => document.getElementById('search')?.focus();
    case '?':
      return () => set({ dialog: 'help' });
    default: {
      const chosen = tabs[Number(key) - 1];
      return chosen === undefined ? undefined : () => set({ tab: chosen.tab });
    }
  }
};
