// The window of the diagram on its time axis: how it is chosen, zoomed and moved.
import type { RefObject } from 'preact';
import { useRef } from 'preact/hooks';
import type { DiagramRun } from './rows.js';
import type { Devtools, Ui } from './state.js';

/** The window in numbers, for the controls beside the diagram. */
export interface Viewport {
  width: number;
  scale: number;
  /** Pixels. */
  left: number;
  /** Milliseconds of the longest axis. */
  length: number;
  /** The pixel of the plot that stays in place when a button or a key zooms. */
  focus: number;
}

export const labelWidth = 184;
/** Beside the end: the reason of the end, such as `maxIterations`. */
export const padding = 120;
/** The pixels before the beginning. */
const margin = 16;
/** A running call scrolls when it is longer. */
const scrollMs = 30_000;
const maxScale = 200;

/** Fits a call that has ended. One that runs fits in steps, and scrolls when it is long. */
export const autoScale = (room: number, length: number, isRunning: boolean): number => {
  if (!isRunning) return Math.min(maxScale, room / length);
  const step = 1.3 ** Math.ceil(Math.log(Math.max(length, 400)) / Math.log(1.3));
  return room / Math.min(step, scrollMs);
};

/** The first visible pixel: as chosen, or so that the end or the position is visible. */
export const leftOf = (given: {
  readonly runs: readonly DiagramRun[];
  readonly ui: Pick<Ui, 'left' | 'isPlaying'>;
  readonly scale: number;
  readonly plot: number;
  readonly length: number;
}): number => {
  const { runs, ui, scale, plot, length } = given;
  const tail = length * scale - (plot - padding);
  const end = tail > 1 ? tail : -margin;
  const run = runs.find(({ position }) => position !== undefined);
  const chosen = ui.left === undefined ? undefined : ui.left * scale;
  if (run?.position === undefined) return chosen ?? end;
  const x = run.axis.toAxis(run.run.log.timeAt(run.position - 1)) * scale;
  // The window follows what is played.
  const isVisible = chosen !== undefined && x >= chosen && x <= chosen + plot;
  if (isVisible || (chosen !== undefined && !ui.isPlaying)) return chosen;
  return Math.min(end, Math.max(-margin, x - plot / 2));
};

/** The window that shows a cluster as large as it can be. */
export const zoomedTo = (
  { axis, run: { log } }: DiagramRun,
  from: number,
  to: number,
  plot: number,
) => {
  const [start, end] = [axis.toAxis(log.timeAt(from)), axis.toAxis(log.timeAt(to))];
  const length = Math.max(end - start, 2 / maxScale);
  const scale = Math.min(maxScale, (plot * 0.8) / length);
  return { scale, left: start - (plot * 0.1) / scale };
};

// ---------------------------------------------------------------- zoom and pan

/** The window after a zoom around a pixel of the plot. Default: its focus. */
export const zoomed = (viewport: Viewport, factor: number, x = viewport.focus) => {
  const { scale, left, width, length } = viewport;
  const next = Math.min(maxScale, Math.max(width / length / 4, scale * factor));
  return { scale: next, left: (left + x) / scale - x / next };
};

export const usePointer = (viewport: RefObject<Viewport>, set: Devtools['set']) => {
  const drag = useRef<{ x: number; left: number; hasMoved: boolean; isDown: boolean }>({
    ...{ x: 0, left: 0, hasMoved: false, isDown: false },
  });
  const panTo = (pixels: number): void => {
    const { current } = viewport;
    set({ scale: current.scale, left: pixels / current.scale });
  };
  return {
    /** Whether the window was moved since the last question. A click that ends it chooses nothing. */
    hasMoved: (): boolean => {
      const { hasMoved } = drag.current;
      drag.current.hasMoved = false;
      return hasMoved;
    },
    onWheel: (event: WheelEvent) => {
      const { current } = viewport;
      const across = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const box =
          event.currentTarget instanceof Element
            ? event.currentTarget.getBoundingClientRect()
            : undefined;
        const x = event.clientX - (box?.left ?? 0) - labelWidth;
        set(zoomed(current, Math.exp(-event.deltaY / 300), x));
      } else if (across !== 0) {
        event.preventDefault();
        panTo(current.left + across);
      }
    },
    onPointerDown: ({ clientX, button }: PointerEvent) => {
      if (button === 0)
        drag.current = {
          x: clientX,
          left: viewport.current.left,
          hasMoved: false,
          isDown: true,
        };
    },
    /** Whether the window is being moved. */
    onPointerMove: ({ clientX, buttons }: PointerEvent): boolean => {
      const { current } = drag;
      if (buttons !== 1 || !current.isDown) {
        current.isDown = false;
        return false;
      }
      if (Math.abs(clientX - current.x) > 4) current.hasMoved = true;
      if (current.hasMoved) panTo(current.left - (clientX - current.x));
      return current.hasMoved;
    },
  };
};
