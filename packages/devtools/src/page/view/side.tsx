// The right pane: the conversation, one entry, breakpoints, layers, and the difference of two runs.
import { durationText } from '../model/axis.js';
import { totalsAt } from '../model/call-lanes.js';
import type { StepPair } from '../model/compare.js';
import type { Run } from '../model/run.js';
import type { CallEntry } from '../protocol.js';
import { Chat } from './chat.js';
import { Difference } from './difference.js';
import { Breakpoints } from './holds.js';
import { Inspector } from './inspector.js';
import { Requests } from './requests.js';
import type { DiagramRun } from './rows.js';
import { costText, countText, type Tab, useDevtools } from './state.js';

export const tabs: readonly { readonly tab: Tab; readonly label: string }[] = [
  { tab: 'conversation', label: 'Conversation' },
  { tab: 'requests', label: 'Prompt' },
  { tab: 'inspector', label: 'Inspector' },
  { tab: 'breakpoints', label: 'Breakpoints' },
  { tab: 'layers', label: 'Layers' },
  { tab: 'difference', label: 'Diff' },
];

interface SideProps {
  readonly runs: readonly DiagramRun[];
  readonly call: CallEntry | undefined;
  readonly pairs: readonly StepPair[];
}

export const Side = ({ runs, call, pairs }: SideProps) => {
  const { ui, set, session } = useDevtools();
  const main = runs.find(({ id }) => id === call?.id);
  const chosen = ui.chosen;
  const inspected = runs.find(({ id }) => id === chosen?.runId);
  const shown = tabs.filter(
    ({ tab }) => tab !== 'difference' || runs.length > 1 || ui.tab === 'difference',
  );
  return (
    <aside class="side" aria-label="Details">
      <div class="tabs" role="tablist" aria-label="Details" onKeyDown={moveFocus}>
        {shown.map(({ tab, label }) => (
          <button
            key={tab}
            type="button"
            role="tab"
            id={`tab-${tab}`}
            aria-selected={ui.tab === tab}
            aria-controls="side-panel"
            tabIndex={ui.tab === tab ? 0 : -1}
            onClick={() => set({ tab })}
          >
            {label}
            {tab === 'breakpoints' && session.breakpoints.length > 0 && (
              <span class="badge">{session.breakpoints.length}</span>
            )}
          </button>
        ))}
      </div>
      <div
        class={ui.tab === 'conversation' ? 'panel at-end' : 'panel'}
        id="side-panel"
        role="tabpanel"
        aria-labelledby={`tab-${ui.tab}`}
        tabIndex={0}
      >
        {ui.tab === 'conversation' && main !== undefined && (
          <div>
            <Totals
              run={main.run}
              position={main.position ?? main.run.log.size}
              known={session.callsById.get(main.id)?.cost}
            />
            {runs.length > 1 && <Switch runs={runs} shown={main} />}
            <Chat of={main} position={main.position ?? main.run.log.size} />
          </div>
        )}
        {ui.tab === 'requests' && <Requests of={main} />}
        {ui.tab === 'inspector' && (
          <Inspector
            run={inspected?.run}
            chosen={chosen}
            call={inspected?.id === call?.id ? call : session.callsById.get(inspected?.id ?? '')}
          />
        )}
        {ui.tab === 'breakpoints' && <Breakpoints />}
        {ui.tab === 'layers' && <Layers rootId={main?.id} />}
        {ui.tab === 'difference' && <Difference runs={runs} pairs={pairs} />}
      </div>
    </aside>
  );
};

/** The arrow keys move between tabs. */
const moveFocus = (event: KeyboardEvent): void => {
  if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
  event.stopPropagation();
  const list = [...document.querySelectorAll<HTMLElement>('.tabs [role=tab]')];
  const at = list.findIndex((tab) => tab === document.activeElement);
  const next = list[(at + (event.key === 'ArrowRight' ? 1 : list.length - 1)) % list.length];
  next?.focus();
  next?.click();
};

/** Which of two runs the conversation and the slider show. */
const Switch = ({
  runs,
  shown,
}: {
  readonly runs: readonly DiagramRun[];
  readonly shown: DiagramRun;
}) => {
  const { set } = useDevtools();
  return (
    <div class="switch actions" role="group" aria-label="Shown run">
      {runs.map(({ id, title }) => (
        <button
          key={id}
          type="button"
          aria-pressed={id === shown.id}
          onClick={() => {
            if (id !== shown.id)
              set({ selected: id, compared: shown.id, position: undefined, isPlaying: false });
          }}
        >
          {title}
        </button>
      ))}
    </div>
  );
};

/** The tokens and times of a run, as they were at the position. `known` is what its call has cost when it had ended. */
const Totals = ({
  run,
  position,
  known,
}: {
  readonly run: Run;
  readonly position: number;
  readonly known: string | undefined;
}) => {
  const { ui } = useDevtools();
  const { root } = run.lanes;
  if (root === undefined) return null;
  const { tokens, turns, end } = totalsAt(root, position);
  const now = run.log.timeAt(position - 1);
  const first = turns.find(({ firstChunkAt }) => firstChunkAt !== undefined)?.firstChunkAt;
  const hasFirst = first !== undefined && first <= now;
  const cost = (end === undefined ? undefined : known) ?? costText(tokens, ui.price);
  const facts: readonly (readonly [string, string])[] = [
    ['tokens in', countText(tokens.input)],
    ['tokens out', countText(tokens.output)],
    ...(tokens.cached > 0 ? [['cached', countText(tokens.cached)] as const] : []),
    ...(cost === undefined ? [] : [['cost', cost] as const]),
    ['first chunk', hasFirst ? durationText(first - root.start) : '–'],
    ['duration', durationText(Math.max(0, (end ?? now) - root.start))],
    ['turns', `${turns.length}`],
  ];
  return (
    <dl class="totals" data-testid="totals">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
};

const Layers = ({ rootId }: { readonly rootId: string | undefined }) => {
  const { session } = useDevtools();
  const calls = [...(rootId === undefined ? [] : (session.layers.get(rootId) ?? []))];
  if (calls.length === 0)
    return (
      <p class="empty">The layers of an agent are known when a call is inspected from its start.</p>
    );
  return (
    <div class="layers">
      <p>
        Outermost first. The number is the priority: lower is further out. Below are the parts of
        the call that a layer wraps, and the events that it intercepts.
      </p>
      {calls.slice(0, 20).map(([callId, layers]) => (
        <section key={callId}>
          <h2>{session.runs.get(rootId ?? '')?.lanes.calls.get(callId)?.name ?? callId}</h2>
          <ol>
            {layers.slice(0, 60).map(({ name, priority, parts }, index) => (
              <li key={index}>
                <strong>{name}</strong> <small>{priority}</small>
                <span>{parts.join(', ')}</span>
              </li>
            ))}
          </ol>
        </section>
      ))}
    </div>
  );
};
