import {
  aroundModel,
  type CallInfo,
  type Context,
  type Embedder,
  type EventOf,
  type Layer,
  MillraceError,
  type Model,
  type ModelChunk,
  type ModelContext,
  type ModelRequest,
  restoreAsyncContext,
  type Usage,
} from 'millrace';
import {
  checkOptions,
  defined,
  having,
  isDelay,
  isFunction,
  isRecord,
  messageOf,
  type Rule,
} from 'millrace/values';
import {
  catchError,
  concat,
  defaultIfEmpty,
  defer,
  EMPTY,
  from,
  ignoreElements,
  map,
  mergeMap,
  type Observable,
  of,
  type OperatorFunction,
  take,
  tap,
  timeout,
} from 'rxjs';
import { isDuration, isShare, keyFrom, userOf } from './model-parts.js';
import { createResponseDraft } from './response-draft.js';
import { requestText, splitQuestion } from './response-key.js';
import {
  type CachedResponse,
  inProcessResponses,
  isCurrent,
  type ResponseStore,
  type SimilarQuestion,
} from './response-store.js';
import { createSingleFlight } from './single-flight.js';

declare module 'millrace' {
  interface Events {
    /** A request was answered without asking the model, or shared the answer of another one. */
    readonly cacheHit: {
      /** The same request, a similar question, or a request that was under way. */
      readonly by: 'exact' | 'meaning' | 'shared';
      /** The usage of the stored or shared answer. It is not part of the usage of the call. */
      readonly saved: Usage;
      /** The age of the answer, in milliseconds. 0 for a shared one. */
      readonly ageMs: number;
      /** The cosine of the angle between the questions, for `meaning`. */
      readonly similarity?: number;
    };
  }
}

/** Which requests are answered from the cache, for whom and for how long. */
export interface CacheResponsesOptions {
  /** How long an answer is used, in milliseconds. Default: an hour. */
  readonly ttlMs?: number | undefined;
  /** Where answers are kept. Default: `inProcessResponses()`. */
  readonly store?: ResponseStore | undefined;
  /**
   * Who shares answers: calls of the same scope. `undefined` or an empty string turns the cache off for a call. Default: the agent and
   * `metadata.userId`; a call without a user is not cached, and emits a `warning`.
   */
  readonly scope?: ((call: CallInfo) => string | undefined) | undefined;
  /** Which requests may be cached. Default: `isCacheable`. */
  readonly when?: ((request: ModelRequest, call: CallInfo) => boolean) | undefined;
  /** Also answers questions that mean the same, if the rest of the request is the same and declares no tools. Default: off. */
  readonly meaning?: MeaningOptions | undefined;
  /** How long the store and the embedder may take before the model is asked, in milliseconds. Default: 2,000. */
  readonly lookupMs?: number | undefined;
}

/** When two questions mean the same. */
export interface MeaningOptions {
  readonly embedder: Embedder;
  /** The least cosine of the angle between two questions, up to 1. It depends on the embedder: measure it. Default: 0.95. */
  readonly threshold?: number | undefined;
}

/**
 * Whether a request may be answered from the cache: it has no tool results, which may be out of date, and does not ask
 * for variety with a `temperature` above 0.
 */
export const isCacheable = ({ messages, temperature = 0 }: ModelRequest): boolean =>
  temperature === 0 && messages.every(({ role }) => role !== 'tool');

/**
 * Answers a request that was answered before from a cache. A request is the same if its model, messages and options are.
 * Concurrent ones are sent once: all of them get the answer as it streams, the first pays for it (the next one if it
 * leaves), and it is aborted when the last has left. Only complete answers are stored, before guards and other interceptors: these see a cached answer like
 * any other. A cached answer has no usage, so it costs a budget nothing, and emits `cacheHit`.
 *
 * One layer is one cache: agents with the same layer share it. A layer that asks again, for a better answer, gets a new one.
 *
 * @example
 * ```ts
 * const cache = cacheResponses({ ttlMs: 600_000 });
 * const agent = createAgent({ model, use: [cache] });
 * await agent.call('What is a mill race?', { metadata: { userId: 'ada' } });
 * ```
 */
export const cacheResponses = (options: CacheResponsesOptions = {}): Layer => {
  checkOptions('cacheResponses()', options, rules);
  const { store = inProcessResponses(), when = isCacheable, scope, meaning } = options;
  checkMeaning(meaning, store);
  const cache = { ...defaults, ...defined(options), store };
  const flights = createSingleFlight<Item>();
  return {
    name: 'cacheResponses',

    model: ({ info: call, hooks }) => {
      const owner =
        scope === undefined ? userScope(call) : keyFrom("cacheResponses(): 'scope'", scope(call));
      let isReported = false;
      const warn = (): void => {
        if (isReported || scope !== undefined) return;
        isReported = true;
        hooks.report(hooks.iteration(), { type: 'warning', message: missingUser });
      };
      return (next) =>
        aroundModel(next, (request, own) =>
          defer(() => {
            if (!when(request, call)) return next.stream$(request, own);
            if (owner === undefined) {
              warn();
              return next.stream$(request, own);
            }
            const keyed = keyedRequest(next.name, owner, request, own);
            if (keyed === undefined) return next.stream$(request, own);
            return flights.join$(
              flightKey(keyed, own),
              own,
              (context) => answer$(next, { ...cache, ...keyed, context }),
              (item, pays) => readItem(item, pays, own.scheduler.now(), hooks),
            );
          }),
        );
    },
  };
};

/** Reports the source of an answer, and returns the chunks that the caller gets. */
const readItem = (
  item: Item,
  pays: () => boolean,
  now: number,
  hooks: Context['hooks'],
): readonly ModelChunk[] => {
  const report = (hit: Origin, saved: Usage, ageMs: number): void =>
    hooks.report(hooks.iteration(), { type: 'cacheHit', ...hit, saved, ageMs });
  if ('hit' in item) {
    const { response, ...hit } = item.hit;
    report(hit, response.usage, now - response.storedAt);
    return [];
  }
  const { chunk, usage } = item;
  if (usage === undefined || pays()) return [chunk];
  if (chunk.type === 'finish') report({ by: 'shared' }, usage, 0);
  return chunk.type === 'usage' ? [] : [chunk];
};

const answer$ = (model: Model, lookup: Lookup): Observable<Item> =>
  lookup.isAgain
    ? ask$(model, lookup, undefined)
    : found$(lookup).pipe(
        mergeMap(({ hit, question }) =>
          hit === undefined
            ? ask$(model, lookup, question)
            : from([{ hit }, ...hit.response.chunks.map((chunk): Item => ({ chunk }))]),
        ),
      );

/** Asks the model, and stores its answer if it is complete. */
const ask$ = (
  model: Model,
  { key, request, store, ttlMs, lookupMs, context }: Lookup,
  question: SimilarQuestion | undefined,
): Observable<Item> =>
  defer(() => {
    const draft = createResponseDraft();
    const items$ = model.stream$(request, context).pipe(
      tap(draft.add),
      map((chunk): Item => ({ chunk, usage: draft.usage() })),
    );
    const stored$ = defer(() => {
      const chunks = draft.chunks();
      if (chunks === undefined) return EMPTY;
      const storedAt = context.scheduler.now();
      const times = { storedAt, expiresAt: storedAt + ttlMs };
      const response: CachedResponse = {
        chunks,
        usage: draft.usage(),
        ...times,
        ...(question !== undefined && { question }),
      };
      return store.set$(key, response).pipe(ignoreElements());
    }).pipe(orWarn('store an answer', EMPTY, lookupMs, context));
    return concat(items$, stored$);
  });

/** A part of an answer: its origin, or a chunk and, unless it is cached, the usage so far. */
type Item = { readonly hit: Hit } | { readonly chunk: ModelChunk; readonly usage?: Usage };

type Origin = Pick<EventOf<'cacheHit'>, 'by' | 'similarity'>;

interface Hit extends Origin {
  readonly response: CachedResponse;
}

interface Keyed {
  readonly key: string;
  readonly model: string;
  readonly owner: string;
  readonly request: ModelRequest;
  /** A layer asks again: the answer it has seen is not good enough. */
  readonly isAgain: boolean;
}

/** A longer request is hardly sent twice, and would fill the store. */
const maxCharacters = 100_000;

const keyedRequest = (
  model: string,
  owner: string,
  request: ModelRequest,
  { stepId }: ModelContext,
): Keyed | undefined => {
  const key = withOwner(owner, requestText(model, request));
  if (key.length > maxCharacters) return undefined;
  return { key, model, owner, request, isAgain: /~\d+(?:#\d+)?$/u.test(stepId) };
};

/** Only requests with the same time-outs share one: these end it for all. */
const flightKey = ({ isAgain, key }: Keyed, { stepId, timeouts }: ModelContext): string =>
  JSON.stringify([isAgain ? stepId : '', timeouts, key]);

/** The length keeps an owner from being taken for a part of the request. */
const withOwner = (owner: string, text: string): string => `${owner.length} ${owner} ${text}`;

interface Lookup extends Keyed {
  readonly store: ResponseStore;
  readonly ttlMs: number;
  readonly lookupMs: number;
  readonly context: ModelContext;
  readonly meaning?: MeaningOptions;
}

interface Found {
  readonly hit?: Hit;
  /** The question, to store the answer with. */
  readonly question?: SimilarQuestion;
}

const found$ = (lookup: Lookup): Observable<Found> => {
  const { store, key, lookupMs, context } = lookup;
  const now = (): number => context.scheduler.now();
  return defer(() => store.get$(key)).pipe(
    take(1),
    defaultIfEmpty(undefined),
    map((response) => (isFresh(response, now()) ? response : undefined)),
    orWarn<CachedResponse | undefined>('read the cache', of(undefined), lookupMs, context),
    mergeMap((response) =>
      response === undefined ? similar$(lookup) : of<Found>({ hit: { by: 'exact', response } }),
    ),
  );
};

const similar$ = (lookup: Lookup): Observable<Found> => {
  const { store, meaning, model, owner, request, lookupMs, context } = lookup;
  const split = isComparable(request) ? splitQuestion(model, request) : undefined;
  if (meaning === undefined || split === undefined) return of({});
  const { embedder, threshold = defaultThreshold } = meaning;
  return defer(() => embedder.embed$([split.text])).pipe(
    take(1),
    mergeMap(([vector = []]) => {
      const question = { place: withOwner(owner, split.place), vector: unit(vector) };
      const nearest$ = store.nearest$?.(question, context.scheduler.now()) ?? of(undefined);
      return nearest$.pipe(
        take(1),
        map((nearest): Found => {
          if (nearest === undefined || nearest.similarity < threshold) return { question };
          const { response, similarity } = nearest;
          return { hit: { by: 'meaning', similarity, response } };
        }),
      );
    }),
    defaultIfEmpty<Found, Found>({}),
    orWarn('search the cache by meaning', of<Found>({}), lookupMs, context),
  );
};

/** A request with tools may act on an exact word, such as an amount, that hardly changes the meaning. */
const isComparable = ({ tools = [] }: ModelRequest): boolean => tools.length === 0;

const isFresh = (response: CachedResponse | undefined, now: number): boolean =>
  isRecord(response) && Array.isArray(response.chunks) && isCurrent(response, now);

const unit = (vector: readonly number[]): readonly number[] => {
  const length = Math.hypot(...vector);
  if (!Number.isFinite(length) || length === 0)
    throw new TypeError('the embedder returned no vector');
  return vector.map((value) => value / length);
};

/** Continues without the cache if it fails or is too slow. */
const orWarn = <T>(
  what: string,
  instead$: Observable<T>,
  lookupMs: number,
  { report, scheduler }: ModelContext,
): OperatorFunction<T, T> => {
  const without$ = (why: string): Observable<T> => {
    report({ type: 'warning', message: `cacheResponses() could not ${what}: ${why}` });
    return instead$;
  };
  return (source) =>
    source.pipe(
      restoreAsyncContext(),
      timeout({
        each: lookupMs,
        scheduler,
        with: () => without$(`it took more than ${lookupMs} ms ('lookupMs').`),
      }),
      catchError((error: unknown) => without$(messageOf(error))),
    );
};

const userScope = (call: CallInfo): string | undefined => {
  const user = userOf(call);
  return user === undefined ? undefined : JSON.stringify([call.agent, user]);
};

const missingUser =
  "cacheResponses() does not know whose answers these are, so it caches nothing. Pass { metadata: { userId } } with the call, or set 'scope', such as () => 'everyone'.";

const defaultThreshold = 0.95;

const defaults = { ttlMs: 3_600_000, lookupMs: 2_000 };

const checkMeaning = (meaning: MeaningOptions | undefined, store: ResponseStore): void => {
  if (meaning === undefined) return;
  checkOptions("cacheResponses(): 'meaning'", meaning, meaningRules, ['embedder']);
  if (store.nearest$ !== undefined) return;
  throw new MillraceError(
    'config',
    "cacheResponses(): 'meaning' needs a store with nearest$(), such as inProcessResponses().",
  );
};

const isStore: Rule = [
  (value) => having('get$', '')[0](value) && having('set$', '')[0](value),
  'a store with get$() and set$(), such as inProcessResponses()',
];

const rules: Readonly<Record<keyof CacheResponsesOptions, Rule>> = {
  ttlMs: isDuration,
  store: isStore,
  scope: isFunction,
  when: isFunction,
  meaning: [isRecord, "an object with an 'embedder'"],
  lookupMs: isDelay,
};

const meaningRules: Readonly<Record<keyof MeaningOptions, Rule>> = {
  embedder: having('embed$', 'an embedder with embed$()'),
  threshold: isShare,
};
