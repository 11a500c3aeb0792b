import {
  catchError,
  defaultIfEmpty,
  defer,
  from,
  map,
  type Observable,
  type ObservableInput,
  of,
  take,
} from 'rxjs';
import { contained } from '../contained.js';
import { messageOf } from '../errors.js';
import type { ToolChoice } from '../model.js';
import type { Toolkit } from '../toolkit.js';
import type { Tool } from './types.js';

/** Which of many tools a call shows to the model. */
export interface ToolSelection {
  /** Picks tools by what is asked. Default: all of them. */
  readonly select?: ToolSelector;
  /** The names of tools that are shown whatever is picked. Default: none. */
  readonly pinned?: readonly string[];
  /** How many tools are shown at most, those that are pinned counted first, and never cut. Default: no limit. */
  readonly maxTools?: number;
}

/** What a selector goes by. */
export interface SelectionRequest {
  /** What the call was asked. */
  readonly text: string;
  /** The tools that can be picked. */
  readonly tools: readonly Tool[];
}

/**
 * Picks tools: gives their names, the best one first, at once or in a while. When it picks nothing, or fails, all tools are shown; a failure is a
 * `warning`.
 */
export type ToolSelector = (
  request: SelectionRequest,
) => readonly string[] | Promise<readonly string[]> | Observable<readonly string[]>;

/** Emits the names of the tools that a call does not show. Never errors. */
export const unselected$ = (
  { select, pinned = [], maxTools = Infinity }: ToolSelection,
  { tools }: Toolkit,
  text: string,
  toolChoice: ToolChoice | undefined,
  warn: (message: string) => void,
): Observable<readonly string[]> => {
  const stays = [
    ...pinned,
    'manage_tools',
    'read_result',
    ...(typeof toolChoice === 'object' ? [toolChoice.name] : []),
  ];
  const open = tools.filter(({ name }) => !stays.includes(name));
  const names = open.map(({ name }) => name);
  const room = Math.max(0, maxTools - (tools.length - open.length));
  return picked$(select, { text, tools: open }, warn).pipe(
    map((picked) => {
      const known = [...new Set(picked)].filter((name) => names.includes(name));
      const chosen = known.length > 0 ? known : names;
      const cut = chosen.slice(room);
      if (cut.length > 0) {
        warn(`Of ${tools.length} tools, ${maxTools} can be shown. Left out: ${cut.join(', ')}.`);
      }
      const shown = new Set(chosen.slice(0, room));
      return names.filter((name) => !shown.has(name));
    }),
  );
};

const picked$ = (
  select: ToolSelector | undefined,
  request: SelectionRequest,
  warn: (message: string) => void,
): Observable<readonly string[]> =>
  select === undefined || request.tools.length === 0
    ? of([])
    : defer(() => inputOf(select(request))).pipe(
        contained(),
        take(1),
        map(namesIn),
        defaultIfEmpty([]),
        catchError((error: unknown) => {
          warn(`The selection of tools failed, so all are shown: ${messageOf(error)}`);
          return of([]);
        }),
      );

/** A list is one value here, and not several. */
const inputOf = (picked: ReturnType<ToolSelector>): ObservableInput<unknown> =>
  Array.isArray(picked) ? of(picked) : from<ObservableInput<unknown>>(picked);

const namesIn = (picked: unknown): readonly string[] => {
  if (Array.isArray(picked) && picked.every((name) => typeof name === 'string')) return picked;
  throw new TypeError('a selector gives a list of names');
};

/** Shows a toolkit without some of its tools, as it is just now. */
export const createView = (
  cell: { readonly current: Toolkit },
  hidden: readonly string[],
): (() => Toolkit) => {
  if (hidden.length === 0) return () => cell.current;
  let whole: Toolkit | undefined;
  let part: Toolkit | undefined;
  return () => {
    // The same declarations each time, as they are written for the wire but once.
    if (part === undefined || whole !== cell.current) {
      whole = cell.current;
      part = without(whole, hidden);
    }
    return part;
  };
};

const without = (toolkit: Toolkit, hidden: readonly string[]): Toolkit => {
  const isShown = ({ name }: { readonly name: string }): boolean => !hidden.includes(name);
  return {
    ...toolkit,
    tools: toolkit.tools.filter(isShown),
    names: toolkit.names.filter((name) => !hidden.includes(name)),
    declarations: toolkit.declarations.filter(isShown),
    find: (name) => (hidden.includes(name) ? undefined : toolkit.find(name)),
  };
};
