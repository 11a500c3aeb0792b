// The controls of time: live, play, step, speed, the scrubber, and the zoom of the diagram.
import type { RefObject } from 'preact';
import { durationText } from '../model/axis.js';
import type { Run } from '../model/run.js';
import type { Connection } from '../model/session.js';

import { Icon, IconButton } from './icons.js';
import { useDevtools } from './state.js';
import { type Viewport, zoomed } from './viewport.js';

export const speeds = [0.25, 0.5, 1, 2, 4, 8, 16];

interface ToolbarProps {
  readonly run: Run | undefined;
  readonly viewport: RefObject<Viewport>;
  readonly connection: Connection;
  readonly go: (position: number | undefined) => void;
  readonly turn: (direction: -1 | 1) => void;
  readonly play: () => void;
}

export const Toolbar = (props: ToolbarProps) => {
  const { session, ui, set } = useDevtools();
  return (
    <header class="toolbar">
      <h1>
        <Logo />
        {session.title}
      </h1>
      <ConnectionState connection={props.connection} />
      <Transport {...props} />
      <Zoom viewport={props.viewport} />
      <div class="group" role="group" aria-label="Page">
        <IconButton icon="settings" label="Settings" act={() => set({ dialog: 'settings' })} />
        <IconButton icon="theme" label="Light or dark" act={toggleTheme} />
        <IconButton
          icon="help"
          label="Keyboard help"
          keys="?"
          act={() => set({ dialog: ui.dialog === 'help' ? undefined : 'help' })}
        />
      </div>
    </header>
  );
};

const Logo = () => (
  <svg class="logo" viewBox="0 0 32 20" aria-hidden="true">
    <path d="M1 10h29M27 5v10" />
    <circle cx="7" cy="10" r="4" />
    <circle cx="18" cy="10" r="4" class="second" />
  </svg>
);

const states: Readonly<Record<Connection, string>> = {
  connecting: 'Connecting',
  open: 'Connected',
  lost: 'Connection lost, trying again',
  refused: 'Refused',
};

const ConnectionState = ({ connection }: { readonly connection: Connection }) => (
  <span class={`connection ${connection}`} role="status">
    <i aria-hidden="true" />
    {states[connection]}
  </span>
);

const Transport = ({ run, go, turn, play }: ToolbarProps) => {
  const { ui, set } = useDevtools();
  const size = run?.log.size ?? 0;
  const position = ui.position ?? size;
  const isLive = ui.position === undefined;
  const isEmpty = size === 0;
  const time = run === undefined || isEmpty ? 0 : run.log.timeAt(position - 1) - run.log.startedAt;
  return (
    <div class="group transport" role="group" aria-label="Time travel">
      <IconButton
        icon="first"
        label="Previous turn"
        keys="Shift+←"
        isDisabled={isEmpty}
        act={() => turn(-1)}
      />
      <IconButton
        icon="previous"
        label="Previous entry"
        keys="←"
        isDisabled={isEmpty}
        act={() => go(Math.max(0, position - 1))}
      />
      <IconButton
        icon={ui.isPlaying ? 'pause' : 'play'}
        label={ui.isPlaying ? 'Pause' : 'Play'}
        keys="Space"
        isDisabled={isEmpty}
        act={play}
      />
      <IconButton
        icon="next"
        label="Next entry"
        keys="→"
        isDisabled={isEmpty || isLive}
        act={() => go(position + 1)}
      />
      <select
        aria-label="Speed"
        value={String(ui.speed)}
        onChange={({ currentTarget }) => {
          set({ speed: Number(currentTarget.value) });
          currentTarget.blur();
        }}
      >
        {speeds.map((speed) => (
          <option key={speed} value={String(speed)}>{`${speed}×`}</option>
        ))}
      </select>
      <input
        type="range"
        class="scrubber"
        aria-label="Position in the log"
        aria-valuetext={`Entry ${position} of ${size}, ${durationText(time)}`}
        min={0}
        max={size}
        step={1}
        value={position}
        disabled={isEmpty}
        onInput={({ currentTarget }) => go(Number(currentTarget.value))}
      />
      <output class="readout">
        {position}/{size} · {durationText(Math.max(0, Math.round(time)))}
      </output>
      <button
        type="button"
        class="live"
        aria-pressed={isLive}
        title="Live (L)"
        onClick={() => go(undefined)}
      >
        <i aria-hidden="true" /> Live
      </button>
    </div>
  );
};

const Zoom = ({ viewport }: { readonly viewport: RefObject<Viewport> }) => {
  const { ui, set } = useDevtools();
  const zoom = (factor: number) => {
    set(zoomed(viewport.current, factor));
  };
  return (
    <div class="group" role="group" aria-label="Zoom">
      <IconButton icon="minus" label="Zoom out" keys="-" act={() => zoom(1 / 1.5)} />
      <IconButton icon="plus" label="Zoom in" keys="+" act={() => zoom(1.5)} />
      <IconButton
        icon="fit"
        label="Fit and follow"
        keys="F"
        isPressed={ui.scale === undefined && ui.left === undefined}
        act={() => set({ scale: undefined, left: undefined })}
      />
      <button
        type="button"
        class="icon-button"
        aria-pressed={ui.isCompressed}
        aria-label="Compress idle time"
        title="Compress idle time (G)"
        onClick={() => set({ isCompressed: !ui.isCompressed })}
      >
        <Icon name="gaps" />
      </button>
    </div>
  );
};

const themeKey = 'millrace-devtools-theme';

/** Shows the page as it was chosen, or as the system is. */
export const applyTheme = (): void => {
  const theme = localStorage.getItem(themeKey);
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset['theme'] = theme;
};

const toggleTheme = (): void => {
  const { theme } = document.documentElement.dataset;
  const isDark =
    theme === undefined ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
  localStorage.setItem(themeKey, isDark ? 'light' : 'dark');
  applyTheme();
};
