// The marble diagram: rows of lanes on a time axis. It draws only what is visible, in both directions.
import type { RefObject } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { ticksIn, type Window, xOf } from '../model/axis.js';
import { Legend } from './legend.js';
import { describeEntry } from '../model/describe.js';
import type { Gap } from '../model/log.js';
import { type DrawnRow, drawnRows, RowDrawing } from './drawing.js';
import { type DiagramRun, type Row, rowHeight, rowsOf } from './rows.js';
import { type Chosen, useDevtools, useSize } from './state.js';
import {
  autoScale,
  labelWidth,
  leftOf,
  padding,
  usePointer,
  type Viewport,
  zoomedTo,
} from './viewport.js';

/** Rows that are drawn above and below the visible ones. */
const overscan = 2;

interface DiagramProps {
  readonly runs: readonly DiagramRun[];
  readonly viewport: RefObject<Viewport>;
  readonly isRunning: boolean;
}

export const Diagram = ({ runs, viewport, isRunning }: DiagramProps) => {
  const { ui, set } = useDevtools();
  const scroller = useRef<HTMLDivElement>(null);
  const { width, height } = useSize(scroller);
  const [top, setTop] = useState(0);
  const plot = Math.max(100, width - labelWidth);
  const length = Math.max(1, ...runs.map(({ axis }) => axis.length));
  const scale = ui.scale ?? autoScale(plot - padding, length, isRunning);
  const left = leftOf({ runs, ui, scale, plot, length });
  const focus = focusOf(runs, ui.chosen, (one, position) => {
    return one.axis.toAxis(one.run.log.timeAt(position)) * scale - left;
  });
  const isVisible = focus !== undefined && focus >= 0 && focus <= plot;
  Object.assign(viewport.current, { width: plot, scale, left, length });
  viewport.current.focus = isVisible ? focus : plot / 2;
  const windows = runs.map(({ axis }): Window => ({ axis, scale, left, right: left + plot }));
  const rows = runs.flatMap(({ run, axis }, index) =>
    rowsOf(index, run, ui.collapsed, {
      from: axis.toTime(left / scale),
      to: axis.toTime((left + plot) / scale),
    }),
  );
  const first = Math.max(0, Math.floor(top / rowHeight) - overscan);
  const last = Math.ceil((top + height) / rowHeight) + overscan;
  const visible = rows.slice(first, last);
  const drawn = drawnRows(
    visible.flatMap((row, index) => {
      const window = windows[row.of];
      const end = runs[row.of]?.run.log.lastAt ?? 0;
      return window === undefined ? [] : [{ row, y: index * rowHeight, window, end }];
    }),
  );
  const input = usePointer(viewport, set);
  return (
    <section class="diagram" aria-label="Marble diagram" data-testid="diagram">
      {windows[0] !== undefined && <Ticks window={windows[0]} plot={plot} />}
      <div
        class="rows"
        ref={scroller}
        tabIndex={0}
        role="group"
        aria-label="Lanes"
        onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
        onWheel={input.onWheel}
      >
        <div class="height" style={{ height: `${rows.length * rowHeight}px` }}>
          <div class="layer" style={{ top: `${first * rowHeight}px` }}>
            <div class="labels" role="list" aria-label="Names of the lanes">
              {visible.map((row) => (
                <RowLabel key={row.key} row={row} title={runs[row.of]?.title} />
              ))}
            </div>
            <Plot runs={runs} drawn={drawn} windows={windows} plot={plot} input={input} />
          </div>
        </div>
      </div>
      <Legend />
    </section>
  );
};

/** The pixel of the position that was chosen with the slider, or of the chosen marble. */
const focusOf = (
  runs: readonly DiagramRun[],
  chosen: Chosen | undefined,
  xAt: (run: DiagramRun, position: number) => number,
): number | undefined => {
  const scrubbed = runs.find(({ position }) => position !== undefined);
  if (scrubbed?.position !== undefined) return xAt(scrubbed, scrubbed.position - 1);
  const run = runs.find(({ id }) => id === chosen?.runId);
  return run && chosen && xAt(run, chosen.position);
};

// ---------------------------------------------------------------- labels and ticks

/** The id of the step of a tool call. */
const stepOf = ({ call, lane }: Row): string => call.stepsByTool.get(lane?.toolCallId ?? '') ?? '';

const RowLabel = ({ row, title }: { readonly row: Row; readonly title: string | undefined }) => {
  const { ui, set } = useDevtools();
  const { call, lane } = row;
  const indent = { 'padding-left': `${8 + call.depth * 12 + (lane === undefined ? 0 : 14)}px` };
  if (lane !== undefined) {
    return (
      <div class={`label ${lane.kind}`} style={indent} role="listitem" title={lane.label}>
        {lane.label}
        {lane.kind === 'tool' && <small> {stepOf(row)}</small>}
      </div>
    );
  }
  const isCollapsed = ui.collapsed.has(call.callId);
  const toggle = () => {
    const collapsed = new Set(ui.collapsed);
    if (!collapsed.delete(call.callId)) collapsed.add(call.callId);
    set({ collapsed });
  };
  return (
    <div class="label head" style={indent} role="listitem">
      <button
        type="button"
        class="fold"
        aria-expanded={!isCollapsed}
        aria-label={`Lanes of ${call.name}`}
        onClick={toggle}
      >
        {isCollapsed ? '▸' : '▾'}
      </button>
      <span title={call.callId}>
        {call.depth === 0 && title !== undefined ? `${title}: ` : ''}
        {call.name}
      </span>
    </div>
  );
};

const Ticks = ({ window, plot }: { readonly window: Window; readonly plot: number }) => (
  <div class="axis">
    <span class="axis-name">time</span>
    <svg width={plot} height={22} role="img" aria-label="Time axis">
      {ticksIn(window).map(({ x, label }) => (
        <g key={label} transform={`translate(${x - window.left} 0)`}>
          <path d="M0 15v7" />
          <text x={4} y={15}>
            {label}
          </text>
        </g>
      ))}
    </svg>
  </div>
);

// ---------------------------------------------------------------- the plot

interface PlotProps {
  readonly runs: readonly DiagramRun[];
  readonly drawn: readonly DrawnRow[];
  readonly windows: readonly Window[];
  readonly plot: number;
  readonly input: ReturnType<typeof usePointer>;
}

const Plot = ({ runs, drawn, windows, plot, input }: PlotProps) => {
  const { ui, set } = useDevtools();
  const [hint, setHint] = useState<{ x: number; y: number; text: string } | undefined>();
  const height = drawn.length * rowHeight;
  const targetOf = (event: Event) => {
    const element =
      event.target instanceof Element ? event.target.closest<SVGElement>('[data-position]') : null;
    const index = Number(element?.closest<SVGElement>('[data-run]')?.dataset['run']);
    const run = runs[index];
    if (element === null || run === undefined) return undefined;
    const { position, until, kind = '', count = '1' } = element.dataset;
    return {
      run,
      position: Number(position),
      until: Number(until),
      kind,
      count: Number(count),
      window: windows[index],
    };
  };
  const choose = (event: Event): void => {
    if (input.hasMoved()) return;
    const target = targetOf(event);
    if (target === undefined) return;
    const { run, position, until, kind, count, window } = target;
    setHint(undefined);
    set({ chosen: { runId: run.id, position, until, kind }, tab: 'inspector' });
    if (count > 1 && window !== undefined) set(zoomedTo(run, position, until, plot));
  };
  return (
    <div class="plot">
      <svg
        width={plot}
        height={height}
        role="group"
        aria-label="Marbles"
        onPointerDown={input.onPointerDown}
        onPointerMove={(event) => {
          const target = input.onPointerMove(event) ? undefined : targetOf(event);
          const text =
            target === undefined ? undefined : hintOf(target.run, target.position, target.count);
          setHint(text === undefined ? undefined : { x: event.clientX, y: event.clientY, text });
        }}
        onPointerLeave={() => setHint(undefined)}
        onClick={choose}
        onKeyDown={(event) => {
          if (event.key === 'Enter' || event.key === ' ') choose(event);
        }}
      >
        <Backdrop runs={runs} windows={windows} drawn={drawn} height={height} />
        {drawn.map((one) => (
          <RowDrawing
            key={one.row.key}
            drawn={one}
            chosen={ui.chosen?.runId === runs[one.row.of]?.id ? ui.chosen?.position : undefined}
          />
        ))}
        <Cursors runs={runs} windows={windows} drawn={drawn} plot={plot} />
      </svg>
      {hint !== undefined && (
        <div
          class="hint"
          style={{
            left: `${Math.min(hint.x + 8, innerWidth - 350)}px`,
            top: `${Math.min(hint.y + 16, innerHeight - 90)}px`,
          }}
        >
          {hint.text}
        </div>
      )}
    </div>
  );
};

const hintOf = ({ run, axis }: DiagramRun, position: number, count: number): string | undefined => {
  const entry = run.log.entry(position);
  if (entry === undefined) return undefined;
  const { title, detail } = describeEntry(entry);
  const time = `${Math.round(axis.toAxis(entry.at))} ms`;
  return `${count > 1 ? `${count} × ` : ''}${title} · ${time}${detail === '' ? '' : `\n${detail}`}`;
};

interface LinesProps {
  readonly runs: readonly DiagramRun[];
  readonly windows: readonly Window[];
  readonly drawn: readonly DrawnRow[];
}

const spanOf = (drawn: readonly DrawnRow[], index: number) => {
  const own = drawn.filter(({ row }) => row.of === index);
  const y = own[0]?.y ?? 0;
  return { y, height: (own.at(-1)?.y ?? y) + (own.length > 0 ? rowHeight : 0) - y };
};

/** Stripes of the rows, and the idle times that are left out. */
const Backdrop = ({ runs, windows, drawn, height }: LinesProps & { readonly height: number }) => {
  const { ui } = useDevtools();
  const [run] = runs;
  const [window] = windows;
  const gaps =
    ui.isCompressed && run !== undefined && window !== undefined
      ? gapsIn(run.run.log.gaps, window)
      : [];
  return (
    <>
      {drawn.map(({ row, y }) =>
        row.lane === undefined ? (
          <rect key={row.key} class="stripe" x={0} y={y} width="100%" height={rowHeight} />
        ) : null,
      )}
      {gaps.map(({ x, width, label }) => (
        <rect
          key={x}
          class="gap"
          role="img"
          x={x}
          y={0}
          width={width}
          height={height}
          aria-label={label}
        />
      ))}
    </>
  );
};

const gapsIn = (gaps: readonly Gap[], window: Window) =>
  gaps
    .map(({ from, to }) => ({
      x: xOf(window, from) - window.left,
      width: Math.max(1, xOf(window, to) - xOf(window, from)),
      label: `${Math.round(to - from)} ms without events`,
    }))
    .filter(({ x, width }) => x + width > 0 && x < window.right - window.left)
    .slice(0, 40);

/** The position of each run: what comes after it is dimmed. And the point of the fork. */
const Cursors = ({ runs, windows, drawn, plot }: LinesProps & { readonly plot: number }) => (
  <>
    {runs.map(({ id, run, position, forkedAt, differsAt }, index) => {
      const window = windows[index];
      const { y, height } = spanOf(drawn, index);
      if (window === undefined || height === 0) return null;
      const x =
        position === undefined
          ? undefined
          : xOf(window, run.log.timeAt(position - 1)) - window.left;
      const difference =
        differsAt === undefined ? undefined : xOf(window, run.log.timeAt(differsAt)) - window.left;
      const fork = forkedAt === undefined ? undefined : xOf(window, forkedAt) - window.left;
      return (
        <g key={id}>
          {x !== undefined && x < plot && (
            <rect
              class="future"
              x={Math.max(0, x)}
              y={y}
              width={plot - Math.max(0, x)}
              height={height}
            />
          )}
          {x !== undefined && (
            <path class="cursor" d={`M${x} ${y}v${height}`} data-testid="cursor" />
          )}
          {fork !== undefined && <path class="fork-line" d={`M${fork} ${y}v${height}`} />}
          {difference !== undefined && (
            <path class="difference-line" d={`M${difference} ${y}v${height}`} />
          )}
        </g>
      );
    })}
  </>
);
