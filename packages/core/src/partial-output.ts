import { Allow, parse } from 'partial-json';
import {
  asyncScheduler,
  filter,
  map,
  type Observable,
  scan,
  type SchedulerLike,
  throttleTime,
} from 'rxjs';
import type { AgentEvent } from './events.js';
import { isRecord } from './json.js';

/** A value that is still being written: anything may be missing yet. */
export type PartialOf<T> = T extends readonly (infer Item)[]
  ? readonly PartialOf<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]?: PartialOf<T[Key]> }
    : T;

/** How often a partial output is shown. */
export interface PartialOutputOptions {
  /** The shortest time between two, in milliseconds. Default: 50. */
  readonly everyMs?: number;
  /** Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Emits the structured output of a call as far as it has been written, from the call's events: at most one
 * every so many milliseconds, the last one whole. Texts may be cut; numbers and words are whole or missing. It is
 * a preview: nothing has been validated before `reply.output`. A message that is discarded begins anew.
 * Cold or hot, and ends, as the events do.
 */
export const partialOutput$ = <Output = unknown>(
  event$: Observable<AgentEvent>,
  { everyMs = 50, scheduler = asyncScheduler }: PartialOutputOptions = {},
): Observable<PartialOf<Output>> =>
  event$.pipe(
    scan(grown, nothing),
    filter((draft) => draft.hasGrown),
    throttleTime(everyMs, scheduler, { leading: true, trailing: true }),
    map(({ deltas }) => preview(deltas.join(''))),
    filter((value): value is PartialOf<Output> => value !== undefined),
  );

interface Draft {
  readonly messageId: string;
  /** It grows in place: a copy for each delta would cost the square of their number. */
  readonly deltas: string[];
  readonly hasGrown: boolean;
}

const nothing: Draft = { messageId: '', deltas: [], hasGrown: false };

const grown = (draft: Draft, event: AgentEvent): Draft => {
  const isText =
    (event.type === 'reasoningChunk' || event.type === 'summaryChunk') && event.kind === 'text';
  if (!isText || event.parentId !== undefined) {
    return draft.hasGrown ? { ...draft, hasGrown: false } : draft;
  }
  const { messageId, delta } = event;
  if (messageId !== draft.messageId) return { messageId, deltas: [delta], hasGrown: true };
  draft.deltas.push(delta);
  return draft.hasGrown ? draft : { ...draft, hasGrown: true };
};

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
