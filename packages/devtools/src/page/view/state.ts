// The choices of the person, and the hooks that keep the page up to date.
import { createContext, type RefObject } from 'preact';
import { useContext, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Observable } from 'rxjs';
import type { Client } from '../client.js';
import { runAxis, type Run } from '../model/run.js';
import type { Session } from '../model/session.js';

export type Tab =
  'conversation' | 'requests' | 'inspector' | 'breakpoints' | 'layers' | 'difference';

/** An entry of a log, or the first and the last of a cluster. */
export interface Chosen {
  readonly runId: string;
  readonly position: number;
  readonly until: number;
  /** The kind of marbles of a cluster. */
  readonly kind: string;
}

/** The choices of the person. */
export interface Ui {
  /** The call that is shown. Default: the newest. */
  readonly selected: string | undefined;
  /** The call beside it. */
  readonly compared: string | undefined;
  /** How many entries of the log have happened. Default: all, live. */
  readonly position: number | undefined;
  readonly isPlaying: boolean;
  readonly speed: number;
  /** Pixels for each millisecond. Default: the call fits, and long calls scroll. */
  readonly scale: number | undefined;
  /** The first millisecond of the axis that is shown. Default: the end is shown. */
  readonly left: number | undefined;
  readonly isCompressed: boolean;
  readonly chosen: Chosen | undefined;
  readonly tab: Tab;
  /** The entry of the request that is shown. Default: the last one. */
  readonly request: number | undefined;
  /** The ids of the calls whose lanes are hidden. */
  readonly collapsed: ReadonlySet<string>;
  readonly price: Price;
  /** The fork that is being prepared. */
  readonly fork: { readonly callId: string; readonly at: string } | undefined;
  readonly dialog: 'help' | 'settings' | undefined;
}

/** Prices of a million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
}

const priceKey = 'millrace-devtools-price';

export const readPrice = (): Price => {
  const [input = 0, output = 0] = (localStorage.getItem(priceKey) ?? '').split(' ').map(Number);
  return { input: input || 0, output: output || 0 };
};

export const writePrice = ({ input, output }: Price): void => {
  localStorage.setItem(priceKey, `${input} ${output}`);
};

export const firstUi = (): Ui => ({
  ...{ selected: undefined, compared: undefined, position: undefined, isPlaying: false, speed: 1 },
  ...{ scale: undefined, left: undefined, isCompressed: true, chosen: undefined },
  ...{ tab: 'conversation', collapsed: new Set(), price: readPrice() },
  ...{ fork: undefined, dialog: undefined, request: undefined },
});

/** Shows another call, as it is now. */
export const selectCall = (id: string): Partial<Ui> => ({
  ...{ selected: id, position: undefined, isPlaying: false, request: undefined },
  ...{ scale: undefined, left: undefined, chosen: undefined },
});

/** The surroundings of each part of the page. */
export interface Devtools {
  readonly session: Session;
  readonly client: Client;
  readonly ui: Ui;
  readonly set: (change: Partial<Ui>) => void;
  /** The newest choices: two keys may come before the page is rendered. */
  readonly latest: () => Ui;
  /** Sends a request, and shows its failure. Returns a function that cancels it. */
  readonly send: <T>(request$: Observable<T>, next?: (value: T) => void) => () => void;
}

export const DevtoolsContext = createContext<Devtools | undefined>(undefined);

export const useDevtools = (): Devtools => {
  const devtools = useContext(DevtoolsContext);
  if (devtools === undefined) throw new Error('The context of the page is missing.');
  return devtools;
};

/** Calls a handler for each key of the window that no field takes. */
export const useKeys = (handle: (event: KeyboardEvent) => void): void => {
  const latest = useRef(handle);
  latest.current = handle;
  // Before the person sees what has the key: other effects come later.
  useLayoutEffect(() => {
    const listener = (event: KeyboardEvent) => {
      latest.current(event);
    };
    window.addEventListener('keydown', listener);
    return () => {
      window.removeEventListener('keydown', listener);
    };
  }, []);
};

/** Whether a key belongs to the element that has the focus. */
export const isTyping = ({ target, key }: KeyboardEvent): boolean =>
  target instanceof HTMLElement &&
  target.closest('input, textarea, select, dialog') !== null &&
  // Checkboxes and sliders take only these.
  !(
    target.matches('[type=checkbox], [type=radio], [type=range]') &&
    target.closest('dialog') === null &&
    key !== ' ' &&
    !key.startsWith('Arrow')
  );

/** Moves the position with the time of the log, while it plays. */
export const usePlayback = (
  run: Run | undefined,
  { ui, set }: Pick<Devtools, 'ui' | 'set'>,
): void => {
  const latest = useRef({ run, ui, set });
  latest.current = { run, ui, set };
  useEffect(() => {
    if (!ui.isPlaying) return undefined;
    let frame = 0;
    let before: number | undefined;
    let ms: number | undefined;
    const step = (now: number): void => {
      const { run: current, ui: chosen, set: change } = latest.current;
      if (current === undefined) return;
      const axis = runAxis(current, chosen.isCompressed);
      const { log } = current;
      const position = chosen.position ?? log.size;
      ms ??= axis.toAxis(log.timeAt(position - 1));
      ms += (now - (before ?? now)) * chosen.speed;
      before = now;
      const next = Math.max(position, log.countAt(axis.toTime(ms)));
      if (next >= log.size) change({ position: undefined, isPlaying: false });
      else {
        if (next !== position) change({ position: next });
        frame = requestAnimationFrame(step);
      }
    };
    frame = requestAnimationFrame(step);
    return () => {
      cancelAnimationFrame(frame);
    };
  }, [ui.isPlaying]);
};

/** The size of an element, as it changes. To read it in every frame would lay the page out again. */
export const useSize = (ref: RefObject<HTMLElement | null>) => {
  const [size, setSize] = useState({ width: 900, height: 500 });
  useEffect(() => {
    const { current } = ref;
    if (current === null) return undefined;
    const observer = new ResizeObserver(() => {
      setSize({ width: current.clientWidth, height: current.clientHeight });
    });
    observer.observe(current);
    return () => {
      observer.disconnect();
    };
  }, []);
  return size;
};

// ---------------------------------------------------------------- texts

export const counted = (count: number, what: string): string =>
  `${count} ${what}${count === 1 ? '' : 's'}`;

export const countText = (count: number): string =>
  count < 1000
    ? `${count}`
    : count < 1_000_000
      ? `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k`
      : `${(count / 1_000_000).toFixed(1)}M`;

/** The cost of tokens, if there is a price. */
export const costText = (
  { input, output }: { readonly input: number; readonly output: number },
  price: Price,
): string | undefined =>
  price.input + price.output === 0
    ? undefined
    : `$${((input * price.input + output * price.output) / 1_000_000).toFixed(4)}`;
