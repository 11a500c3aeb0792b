import type { Observable, ObservableInput } from 'rxjs';
import { catchError, concatMap, defaultIfEmpty, defer, from, map, of, take } from 'rxjs';
import { ignoreElements, isObservable, ReplaySubject, share, takeUntil, tap } from 'rxjs';
import { contained } from '../flow/contained.js';
import { usesIn } from '../memories/suspend.js';
import type { ToolChoice } from '../models/model.js';
import { type Call, hideTools, isOpen, questionOf } from '../seams/call.js';
import { isEarlier } from '../seams/input.js';
import type { Context, Layer } from '../seams/layer.js';
import { cell, waited$ } from '../step.js';
import type { Toolkit, ToolkitCell } from '../tools/toolkit.js';
import { createToolkit, namesOf, withoutNamed } from '../tools/toolkit.js';
import type { Tool, ToolEntry } from '../tools/types.js';
import { isConfigError, messageOf, misuse } from '../values/errors.js';
import { checkOptions, isFunction, listOf, type Rule, wholeNumber } from '../values/options.js';
import type { InputSchema } from '../values/schema.js';
import { isArrayOf, isString } from '../values/shape.js';
import { layerPlaces } from '../seams/layer-places.js';
import type { AgentOptions } from '../call/agent-options.js';

export interface ToolSelection {
  /** Picks tools for the question. Default: all tools. */
  readonly select?: ToolSelector;
  /** Names of tools that are always shown. Default: none. */
  readonly pinned?: readonly string[];
  /** Maximum number of tools to show. Pinned tools count first and are never removed. Default: no limit. */
  readonly maxTools?: number;
}

export interface SelectionRequest {
  readonly text: string;
  readonly tools: readonly Tool[];
}

/**
 * Returns the names of tools, best first. If it returns none or fails (a `warning`), all tools are shown. Names that no tool of the
 * call has are ignored: tools may be removed. Anything else than a list of strings is a `config` error.
 */
export type ToolSelector = (
  request: SelectionRequest,
) => readonly string[] | Promise<readonly string[]> | Observable<readonly string[]>;

/**
 * Selects the tools that a call shows to the model, based on its question. Tools of `addTools()` and one that the call
 * forces are always shown. On a call, it replaces that of its agent. An interrupt does not wait for the selector.
 */
export const selectTools = (options: ToolSelection = {}): Layer => {
  checkOptions('selectTools()', options, rules);
  return {
    name: 'selectTools',
    priority: layerPlaces.selectTools,
    single: true,
    call:
      ({ perform, hooks, local }) =>
      (next) =>
      (call) => {
        if (!isOpen(call)) return next(call);
        return perform<readonly string[]>({
          kind: 'select',
          id: 'select',
          input: call.input,
          run: () =>
            hiddenTools$(
              { ...options, pinned: pinnedBy(options, call, local(alwaysShown)) },
              call.toolkit.current,
              questionOf(call),
              call.options.request?.toolChoice,
              (message) => hooks.report(0, { type: 'warning', message }),
            ),
          cut: () => of([]),
          form: { isWritten: isArrayOf(isString) },
        }).pipe(concatMap((hidden) => next(hideTools(call, ...hidden))));
      },
  };
};

/** The names of tools that are shown in addition to the selected ones of a call. */
export const alwaysShown = cell('call', () => new Set<string>());

const rules: Readonly<Record<keyof ToolSelection, Rule>> = {
  select: isFunction,
  pinned: listOf('names of tools'),
  maxTools: wholeNumber(1),
};

const pinnedBy = (
  { pinned = [] }: ToolSelection,
  { history, late }: Call,
  always: ReadonlySet<string>,
): readonly string[] => {
  const uses = usesIn(history);
  const resumed = late.flatMap((message) =>
    message.role === 'tool' && !isEarlier(message)
      ? message.content.map((it) => uses.get(it.toolCallId)?.name)
      : [],
  );
  return [...pinned, ...always, ...resumed.filter((name) => name !== undefined)];
};

const hiddenTools$ = (
  { select, pinned = [], maxTools = Infinity }: ToolSelection,
  { tools }: Toolkit,
  text: string,
  toolChoice: ToolChoice | undefined,
  warn: (message: string) => void,
): Observable<readonly string[]> => {
  const shownAnyway = [
    ...pinned,
    'manage_tools',
    'read_result',
    ...(typeof toolChoice === 'object' ? [toolChoice.name] : []),
  ];
  const selectable = tools.filter(({ name }) => !shownAnyway.includes(name));
  const names = selectable.map(({ name }) => name);
  const room = Math.max(0, maxTools - (tools.length - selectable.length));
  return picked$(select, { text, tools: selectable }, warn).pipe(
    map((picked) => {
      const known = [...new Set(picked)].filter((name) => names.includes(name));
      const chosen = known.length > 0 ? known : names;
      const cut = chosen.slice(room);
      if (cut.length > 0) {
        warn(`Only ${maxTools} of ${tools.length} tools can be shown. Hidden: ${cut.join(', ')}.`);
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
    : defer(() => toInput(select(request))).pipe(
        contained(),
        take(1),
        map(namesIn),
        defaultIfEmpty([]),
        catchError((error: unknown) => {
          if (isConfigError(error)) throw error;
          warn(`The tool selector failed, so all tools are shown: ${messageOf(error)}`);
          return of([]);
        }),
      );

const toInput = (picked: ReturnType<ToolSelector>): ObservableInput<unknown> =>
  Array.isArray(picked) ? of(picked) : from<ObservableInput<unknown>>(picked);

const namesIn = (picked: unknown): readonly string[] => {
  if (Array.isArray(picked) && picked.every((name) => typeof name === 'string')) return picked;
  throw misuse(`selectTools(): 'select' must return a list of names, such as ['search'].`);
};

/**
 * Adds tools for one call. `selectTools` never hides them. A name that already exists is a `config` error. Instead of
 * tools and groups, it takes an Observable of lists of them: the call waits for the first, and its next request has the
 * latest. A tool that is replaced by another while its call waits does not run; one that is made again does. An error fails the
 * call; `selectTools` may hide these tools.
 */
export const addTools = (
  ...added: readonly ToolEntry[] | readonly [Observable<readonly ToolEntry[]>]
): Layer => ({
  name: 'addTools',
  priority: layerPlaces.additions,
  call: (context) => (next) => (call) =>
    defer(() => {
      const entries = added.filter((entry): entry is ToolEntry => !isObservable(entry));
      const toolkit = withAdded(call.toolkit, entries);
      pin(context, namesOf(entries));
      const [source] = added;
      if (!isObservable(source) || !isOpen(call)) return next({ ...call, toolkit });
      const list$ = source.pipe(
        contained(),
        tap(toolkit.offer),
        share({ connector: () => new ReplaySubject(1), resetOnComplete: false }),
      );
      const id = `addTools/${(context.local(waits).count += 1)}`;
      return waited$(context, id, list$.pipe(take(1), defaultIfEmpty([]))).pipe(
        concatMap(() => next({ ...call, toolkit })),
        takeUntil(list$.pipe(ignoreElements())),
      );
    }),
});

const pin = ({ local }: Pick<Context, 'local'>, names: readonly string[]): void =>
  names.forEach((name) => local(alwaysShown).add(name));

const waits = cell('call', () => ({ count: 0 }));

/** Adds a call's own tools to a cell, only in its view; other changes reach the cell. A name conflict is `config`. */
const withAdded = (
  shared: ToolkitCell,
  first: readonly ToolEntry[],
): ToolkitCell & { readonly offer: (entries: readonly ToolEntry[]) => void } => {
  let [added, own] = [first, first];
  let seen = shared.current;
  const withOwn = (entries: readonly ToolEntry[]): Toolkit =>
    createToolkit([...entries, ...own], seen.hidden);
  let whole = withOwn(seen.entries);
  const removed: string[] = [];
  return {
    get current() {
      if (seen !== shared.current) {
        seen = shared.current;
        whole = withOwn(withoutNamed(seen.entries, namesOf(own)));
      }
      return whole;
    },
    set current(changed: Toolkit) {
      const names = namesOf(added);
      const isOwn = ({ name }: ToolEntry): boolean => names.includes(name);
      const hidden = seen.entries.filter(isOwn);
      const left = new Set(namesOf(changed.entries));
      removed.push(...namesOf(own).filter((name) => !left.has(name)));
      own = changed.entries.filter(isOwn);
      whole = changed;
      seen = createToolkit([...changed.entries.filter((entry) => !isOwn(entry)), ...hidden]);
      shared.current = seen;
    },
    /** Replaces the added entries, but for those that the call has removed. */
    offer: (entries) => {
      added = entries;
      own = withoutNamed(entries, removed);
      seen = shared.current;
      whole = withOwn(seen.entries);
    },
  };
};

/** Adds tools to an agent that are always shown, even if `selectTools` picks others. */
export const withOwnTools = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  own: readonly ToolEntry[],
): AgentOptions<Output> => {
  const { tools = [], use = [] } = options;
  return { ...options, tools: [...tools, ...own], use: [...use, pinning(namesOf(own))] };
};

const pinning = (names: readonly string[]): Layer => ({
  name: 'pinnedTools',
  priority: layerPlaces.pinnedTools,
  call: (context) => (next) => {
    pin(context, names);
    return next;
  },
});
