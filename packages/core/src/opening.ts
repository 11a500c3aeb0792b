import {
  concatMap,
  defaultIfEmpty,
  defer,
  identity,
  map,
  type Observable,
  of,
  take,
  takeUntil,
} from 'rxjs';
import type { CallInfo } from './call-info.js';
import { limitsOf } from './call-options.js';
import type { CallPlan } from './call-plan.js';
import type { CallScope } from './call-scope.js';
import { contained } from './contained.js';
import { cutObservation } from './cut-observation.js';
import { MillraceError } from './errors.js';
import { failAs } from './fail-as.js';
import type { Hooks } from './hooks.js';
import { isRecord } from './json.js';
import type { Memory } from './memory.js';
import { type Message, textOf, type ToolMessage } from './message.js';
import { unpaired } from './run.js';
import { brought$ } from './tools/brought.js';
import { type ToolSelection, unselected$ } from './tools/select.js';
import { assertResumes, usesIn, withResults } from './tools/suspend.js';

/** What a call begins with, and would begin with again if it were resumed. */
export interface Opening {
  /** With the results that were brought in their places. */
  readonly history: readonly Message[];
  /** These results, as memory is to have them. */
  readonly late: readonly ToolMessage[];
  readonly system: string | undefined;
  /** The names of tools that the model is not shown. */
  readonly hidden: readonly string[];
  readonly createdAt: number;
}

/** Opens a call: what memory holds, the results that were waited for, the system prompt, the tools that are shown. */
export const opening$ = (
  { instructions, toolkit, options }: CallPlan,
  { call, scheduler, interruption }: CallScope,
  hooks: Hooks,
  memory: Memory,
  input: readonly Message[],
  /** What the call brings for tools that wait; absent where it is not to go on. */
  resumed: { readonly results: ToolMessage | undefined } | undefined,
): Observable<Opening> => {
  const { toolSelection, toolChoice } = options;
  const { maxObservation } = limitsOf(options);
  const createdAt = scheduler.now();
  return defer(() => memory.load$()).pipe(
    contained(),
    failAs('memory', 'The memory could not be read'),
    take(1),
    defaultIfEmpty([]),
    concatMap((loaded) => {
      const results = resumed?.results;
      const asked = results === undefined ? input : [results, ...input];
      const history = usable(loaded, asked, call);
      if (resumed !== undefined) assertResumes(history, results);
      if (results === undefined) return of({ history, late: [] });
      return brought$(hooks, history, results).pipe(
        map((edited) => cutResults(edited, maxObservation)),
        map((late) => ({ history: withResults([...history, late]), late: [late] })),
      );
    }),
    map(({ history, late }) => ({
      history,
      late,
      system: typeof instructions === 'function' ? instructions(call) : instructions,
      hidden: [],
      createdAt,
    })),
    toolSelection === undefined
      ? identity
      : concatMap((opening) =>
          unselected$(
            { ...toolSelection, pinned: pinnedBy(toolSelection, opening) },
            toolkit.current,
            textToSelectBy(input, opening.history),
            toolChoice,
            (message) => hooks.report(0, { type: 'warning', message }),
          ).pipe(
            takeUntil(interruption.cut$),
            defaultIfEmpty([]),
            map((hidden) => ({ ...opening, hidden })),
          ),
        ),
  );
};

const cutResults = (results: ToolMessage, most: number): ToolMessage => ({
  ...results,
  content: results.content.map((it) => ({ ...it, content: cutObservation(it.content, most) })),
});

/** Where a call brings results and no words, what was asked last is what it goes on with. */
const textToSelectBy = (input: readonly Message[], history: readonly Message[]): string => {
  const said = input.map(textOf).join('\n');
  const asked = history.findLast(({ role }) => role === 'user');
  return said === '' && asked !== undefined ? textOf(asked) : said;
};

/** A tool whose result was brought may have to be asked again. */
const pinnedBy = (
  { pinned = [] }: ToolSelection,
  { history, late }: Pick<Opening, 'history' | 'late'>,
): readonly string[] => {
  const uses = usesIn(history);
  const resumed = late.flatMap(({ content }) => content.map((it) => uses.get(it.toolUseId)?.name));
  return [...pinned, ...resumed.filter((name) => name !== undefined)];
};

/** Checked, because a memory is foreign code. */
const isList = (value: unknown): boolean => Array.isArray(value);

const isMessage = (value: unknown): boolean =>
  isRecord(value) &&
  typeof value['id'] === 'string' &&
  ['user', 'assistant', 'tool'].some((role) => role === value['role']) &&
  Array.isArray(value['content']) &&
  value['content'].every((block) => isRecord(block) && typeof block['type'] === 'string');

const usable = (
  loaded: readonly Message[],
  input: readonly Message[],
  { callId }: CallInfo,
): readonly Message[] => {
  if (!isList(loaded)) {
    throw new MillraceError('memory', 'The memory gave no list of messages.');
  }
  if (!loaded.every(isMessage)) {
    throw new MillraceError('memory', 'The memory gave something that is no message.');
  }
  const history = withResults(loaded);
  const fault = unpaired(history);
  if (fault !== undefined) {
    throw new MillraceError('memory', `The memory holds ${fault}: it cannot be sent to a model.`);
  }
  if (loaded.some(({ id }) => input.some((message) => message.id === id))) {
    throw new MillraceError(
      'conflict',
      `The session has had a call '${callId}' already. Give each call an id of its own, or none.`,
    );
  }
  return history;
};
