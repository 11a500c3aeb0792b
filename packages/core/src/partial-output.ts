import { Allow, parse } from 'partial-json';
import {
  asyncScheduler,
  connect,
  distinctUntilChanged,
  endWith,
  filter,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  type OperatorFunction,
  scan,
  type SchedulerLike,
  takeUntil,
  throttle,
  timer,
} from 'rxjs';
import type { AgentEvent } from './events.js';
import { isRecord } from './json.js';
import { byCall, isSpoken } from './streams/event-operators.js';

/** A value that is still being written: anything may be missing yet. */
export type PartialOf<T> = T extends readonly (infer Item)[]
  ? readonly PartialOf<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]?: PartialOf<T[Key]> }
    : T;

/** How often a partial output is shown. */
export interface PartialOutputOptions {
  /** The shortest time between two of a call, in milliseconds. Default: 50. */
  readonly everyMs?: number;
  /** Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Emits the structured output of calls as far as it has been written, from their events: at most one every so many
 * milliseconds for each call, and the whole one as soon as its message is whole. Texts may be cut; numbers and
 * words are whole or missing. It is a preview: nothing has been validated before `reply.output`. A message that is discarded
 * begins anew, and sub-agents are left out that do not speak for the root. Cold or hot, and ends, as the events do.
 */
export const partialOutput$ = <Output = unknown>(
  event$: Observable<AgentEvent>,
  { everyMs = 50, scheduler = asyncScheduler }: PartialOutputOptions = {},
): Observable<PartialOf<Output>> =>
  event$.pipe(
    filter(isSpoken),
    byCall(),
    mergeMap((call$) => call$.pipe(drafts, sampled(everyMs, scheduler))),
    map(({ deltas }) => preview(deltas.join(''))),
    filter((value): value is PartialOf<Output> => value !== undefined),
  );

interface Draft {
  readonly messageId: string;
  /** It grows in place: a copy for each delta would cost the square of their number. */
  readonly deltas: string[];
  /** How many deltas there are: what tells one state of a draft from another. */
  readonly length: number;
  readonly characters: number;
  readonly isWhole: boolean;
}

const drafts: OperatorFunction<AgentEvent, Draft> = (event$) =>
  event$.pipe(
    scan(grown, nothing('')),
    distinctUntilChanged(),
    filter(({ length }) => length > 0),
  );

const nothing = (messageId: string): Draft => ({
  messageId,
  deltas: [],
  length: 0,
  characters: 0,
  isWhole: false,
});

const grown = (draft: Draft, event: AgentEvent): Draft => {
  switch (event.type) {
    case 'reasoningChunk':
    case 'summaryChunk': {
      if (event.kind !== 'text') return draft;
      const { messageId, delta } = event;
      const { deltas, characters } = messageId === draft.messageId ? draft : nothing(messageId);
      deltas.push(delta);
      return {
        messageId,
        deltas,
        length: deltas.length,
        characters: characters + delta.length,
        isWhole: false,
      };
    }
    case 'postReasoning':
    case 'postSummary':
      return { ...draft, isWhole: true };
    default:
      return draft;
  }
};

/** Characters that a millisecond of waiting pays for: a long text takes long to parse, and is shown less often. */
const perMs = 200;

const sampled = (everyMs: number, scheduler: SchedulerLike): OperatorFunction<Draft, Draft> =>
  connect((draft$) =>
    merge(
      draft$.pipe(filter(({ isWhole }) => isWhole)),
      draft$.pipe(
        throttle(({ characters }) => timer(Math.max(everyMs, characters / perMs), scheduler), {
          leading: true,
          trailing: true,
        }),
        takeUntil(draft$.pipe(ignoreElements(), endWith(true))),
      ),
    ).pipe(distinctUntilChanged((a, b) => a.messageId === b.messageId && a.length === b.length)),
  );

const preview = (text: string): unknown => {
  const start = text.indexOf('{');
  if (start === -1) return undefined;
  try {
    return ownOnly(parse(text.slice(start), Allow.OBJ | Allow.ARR | Allow.STR));
  } catch {
    return undefined;
  }
};

/** The parser sets keys by assignment, so that a `__proto__` in the text would become a prototype. */
const ownOnly = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(ownOnly);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, ownOnly(item)]));
};
