// Draws the rows of the diagram. Every position is a pixel of the axis: a group moves them into the window.
import {
  barsIn,
  durationText,
  joinClusters,
  type Marble,
  marblesIn,
  type ShownBar,
  type Window,
  xOf,
} from '../model/axis.js';
import type { BarEnd, CallLanes, Turn } from '../model/call-lanes.js';
import { lookOf, pathOf } from './glyphs.js';
import { type Row, rowHeight } from './rows.js';
import { countText } from './state.js';

/** A row with what is visible of it. */
export interface DrawnRow {
  readonly row: Row;
  readonly y: number;
  readonly window: Window;
  /** The end of open bars. */
  readonly end: number;
  readonly marbles: readonly Marble[];
  readonly bars: readonly ShownBar[];
}

const maxElements = 420;
const firstBin = 40;

/** The visible marbles and bars of rows. The more there is, the larger are the clusters. */
export const drawnRows = (
  rows: readonly Omit<DrawnRow, 'marbles' | 'bars'>[],
): readonly DrawnRow[] => {
  for (let bin = firstBin; ; bin *= 2) {
    const drawn = rows.map((given): DrawnRow => {
      const { row, window, end } = given;
      const series = [...(row.lane?.series.values() ?? [])];
      return {
        ...given,
        marbles: joinClusters(series.flatMap((one) => marblesIn(one, window, bin))),
        bars: row.lane === undefined ? [] : barsIn(row.lane, window, end, bin / 20),
      };
    });
    const count = drawn.reduce(
      (sum, { marbles, bars }) => sum + marbles.length * 2 + bars.length * 2,
      0,
    );
    if (count <= maxElements * 2 || bin > 1000) return drawn;
  }
};

const middle = rowHeight / 2;

export const RowDrawing = ({
  drawn,
  chosen,
}: {
  readonly drawn: DrawnRow;
  readonly chosen: number | undefined;
}) => {
  const { row, y, window, bars, marbles } = drawn;
  const { left } = window;
  return (
    <g
      transform={`translate(${-left} ${y})`}
      data-lane={row.lane?.kind ?? 'call'}
      data-run={row.of}
      class={`row ${row.lane?.kind ?? 'call'}`}
    >
      {row.lane === undefined ? (
        <CallBand call={row.call} window={window} end={drawn.end} />
      ) : (
        <path
          class="base"
          d={`M${Math.max(left, xOf(window, row.call.start))} ${middle}H${xOf(window, row.call.end ?? drawn.end)}`}
        />
      )}
      {bars.map((shown) => (
        <BarDrawing key={shown.index} shown={shown} left={left} isPlain={row.call.isInspected} />
      ))}
      {marbles.map((marble) => (
        <MarbleDrawing key={marble.key} marble={marble} isChosen={marble.position === chosen} />
      ))}
    </g>
  );
};

// ---------------------------------------------------------------- calls and turns

const CallBand = ({
  call,
  window,
  end,
}: {
  readonly call: CallLanes;
  readonly window: Window;
  readonly end: number;
}) => {
  const { left, right } = window;
  const to = xOf(window, call.end ?? end);
  const first = call.turns.findLastIndex(({ start }) => xOf(window, start) <= left);
  const shown: readonly Turn[] = call.turns.slice(Math.max(0, first));
  const visible = shown.filter(({ start }) => xOf(window, start) <= right).slice(0, 60);
  return (
    <>
      <path
        class="call-line"
        d={`M${xOf(window, call.start)} ${middle - 7}v14M${xOf(window, call.start)} ${middle}H${to}`}
      />
      {visible.map((turn) => (
        <TurnBand key={turn.iteration} turn={turn} window={window} end={call.end ?? end} />
      ))}
      {call.end !== undefined && <EndGlyph x={to} ended={call.hasFailed ? 'error' : 'complete'} />}
      {call.end !== undefined && (
        <text class={call.hasFailed ? 'reason bad' : 'reason'} x={to + 9} y={middle + 4}>
          {call.reason}
        </text>
      )}
    </>
  );
};

const TurnBand = ({
  turn,
  window,
  end,
}: {
  readonly turn: Turn;
  readonly window: Window;
  readonly end: number;
}) => {
  const from = xOf(window, turn.start);
  const width = Math.max(1, xOf(window, turn.end ?? end) - from);
  const x = Math.max(from, window.left);
  const room = from + width - x;
  const { input, output } = turn.tokens;
  const tokens = input + output > 0 ? ` · ${countText(input)}→${countText(output)} tok` : '';
  const { requestedAt, firstChunkAt } = turn;
  const first =
    requestedAt === undefined || firstChunkAt === undefined
      ? ''
      : ` · first ${durationText(firstChunkAt - requestedAt)}`;
  const label = [
    `turn ${turn.iteration}${tokens}${first}`,
    `turn ${turn.iteration}${tokens}`,
    `turn ${turn.iteration}`,
    `${turn.iteration}`,
  ];
  return (
    <>
      <rect
        class={turn.iteration % 2 === 0 ? 'turn even' : 'turn'}
        x={from}
        y={3}
        width={width}
        height={rowHeight - 6}
        rx={3}
        role="button"
        tabIndex={-1}
        aria-label={label[0]}
        data-kind="turn"
        data-position={turn.position}
        data-until={turn.position}
      />
      {room > 12 && (
        <text class="turn-label" x={x + 6} y={middle + 4}>
          {label.find((text) => text.length * 6 + 10 < room) ?? ''}
        </text>
      )}
    </>
  );
};

// ---------------------------------------------------------------- bars

const ends: Readonly<Record<BarEnd, string>> = {
  open: '',
  complete: 'v-6v12',
  error: 'm-5-5l10 10m0-10l-10 10',
  unsubscribed: 'm0-7v8m0 4v2',
  vetoed: 'm-4-4l8 8m0-8l-8 8',
  cut: 'm-3 6l6-12',
};

const EndGlyph = ({ x, ended }: { readonly x: number; readonly ended: BarEnd }) => (
  <path class={`end ${ended}`} d={`M${x} ${middle}${ends[ended]}`} />
);

const heights: Readonly<Record<string, number>> = { message: 16, tool: 12, intent: 4, request: 0 };

const barNames: Readonly<Record<BarEnd, string>> = {
  ...{ open: 'running', complete: 'complete', error: 'failed', unsubscribed: 'unsubscribed' },
  ...{ vetoed: 'vetoed', cut: 'cut short' },
};

const BarDrawing = ({
  shown,
  left,
  isPlain,
}: {
  readonly shown: ShownBar;
  readonly left: number;
  readonly isPlain: boolean;
}) => {
  const { bar, x, width } = shown;
  const { kind, label, ended, start, end } = bar;
  const height = heights[kind] ?? 10;
  const isLine = kind === 'request';
  const duration = end === undefined ? '' : `, ${durationText(end - start)}`;
  const begin = Math.max(x, left);
  const room = x + width - begin;
  const hasEnd = isLine || kind === 'tool' || (kind === 'message' && !isPlain);
  const isNamed = height === 10 && label.length * 6 + 8 < room;
  return (
    <>
      {!isLine && (
        <rect
          class={`bar ${kind} ${ended}${bar.isEdited ? ' edited' : ''}`}
          x={x}
          y={middle - height / 2}
          width={Math.max(1.5, width)}
          height={height}
          rx={2}
          role="button"
          tabIndex={-1}
          aria-label={`${label}, ${barNames[ended]}${duration}`}
          data-kind={`${kind}Bar`}
          data-position={bar.position}
          data-until={bar.endPosition ?? bar.position}
        />
      )}
      {hasEnd && (
        <path
          class={`subscription ${kind} ${ended}`}
          d={`M${x - 3} ${middle + 9}l3-4l3 4M${x} ${middle}H${x + width}${ended === 'error' || ended === 'vetoed' || ended === 'complete' || ended === 'unsubscribed' || ended === 'cut' ? ends[ended] : ''}`}
          data-kind={`${kind}Line`}
        />
      )}
      {isNamed && (
        <text class="bar-label" x={begin + 4} y={middle + 3.5}>
          {label}
        </text>
      )}
    </>
  );
};

// ---------------------------------------------------------------- marbles

const MarbleDrawing = ({
  marble,
  isChosen,
}: {
  readonly marble: Marble;
  readonly isChosen: boolean;
}) => {
  const { kind, x, count, position, until } = marble;
  const { shape, tone, label } = lookOf(kind);
  const shared = {
    role: 'button',
    tabIndex: -1,
    'data-kind': kind,
    'data-position': position,
    'data-until': until,
  } as const;
  if (count === 1) {
    return (
      <path
        class={`marble ${shape} ${tone}${isChosen ? ' chosen' : ''}`}
        d={pathOf(shape)}
        transform={`translate(${x} ${middle})`}
        aria-label={`${label}, entry ${position}`}
        {...shared}
      />
    );
  }
  const text = `×${countText(count)}`;
  const { width } = marble;
  return (
    <g
      class={`cluster ${shape} ${tone}${isChosen ? ' chosen' : ''}`}
      transform={`translate(${x} ${middle})`}
      aria-label={`${count} ${label}`}
      data-count={count}
      {...shared}
    >
      <rect y={-6} width={width} height={12} rx={shape === 'square' ? 2 : 6} />
      {text.length * 6.2 + 4 <= width && (
        <text x={width / 2} y={3.5}>
          {text}
        </text>
      )}
    </g>
  );
};
