import {
  fallback,
  MillraceError,
  type Model,
  type ModelChunk,
  type ModelContext,
  type ModelReport,
  type ModelRequest,
  type Usage,
  restoreAsyncContext,
} from 'millrace';
import { checkOptions, isDelay } from 'millrace/values';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  map,
  merge,
  NEVER,
  type Observable,
  type ObservableInput,
  race,
  ReplaySubject,
  Subject,
  switchMap,
  take,
  throwIfEmpty,
  timer,
} from 'rxjs';
import { failureOf, isModel, structured } from './model-parts.js';

export interface HedgeOptions {
  /** How long the first model may be silent before the second one is asked too, in milliseconds. */
  readonly afterMs: number;
}

declare module 'millrace' {
  interface Events {
    /** A second model is asked, because the first one is slow. */
    readonly modelHedged: {
      readonly from: string;
      readonly to: string;
      /** Milliseconds of silence, without the time in which demand was closed. */
      readonly waitedMs: number;
    };
  }
}

/**
 * Asks a second model too if the first one is silent for `afterMs`: the first to emit content answers, and the other
 * request is aborted in the same tick. Time with closed demand does not count. The second request emits `modelHedged`; if
 * the second model answers, `modelFallback` follows, so prices and telemetry name it.
 *
 * A model that fails before any content leaves the answer to the other one, which is asked immediately if the error is
 * retryable. If both fail, it errors with the last error. All usage counts, also that of the loser and of failures. If the
 * second model answers after the first one has reported usage, a `restart` comes first: each pays its own price. Cold, as
 * every model; the time-outs of the call apply to both models together.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model: hedge(model, backup, { afterMs: 800 }) });
 * ```
 */
export const hedge = (first: Model, second: Model, options: HedgeOptions): Model => {
  checkOptions('hedge()', { first, second, ...options }, rules, ['first', 'second', 'afterMs']);
  const { afterMs } = options;
  const models = [structured(first), structured(second)] as const;
  // The time-outs of a call apply to both models together.
  const { keepsTime: _, ...both } = fallback(first, second);
  return {
    ...both,
    stream$: (request, context) => answer$(models, afterMs, request, context),
  };
};

const rules = { first: isModel, second: isModel, afterMs: isDelay };

type Hedged = ModelReport | { type: 'modelHedged'; from: string; to: string; waitedMs: number };

/** A context that reports any event: the loop passes on every type, and `ModelReport` is the closed list of core. */
interface Reporter {
  report(event: Hedged): void;
}

interface Names {
  readonly from: string;
  readonly to: string;
}

const answer$ = (
  [first, second]: readonly [Model, Model],
  afterMs: number,
  request: ModelRequest,
  context: ModelContext,
): Observable<ModelChunk> =>
  defer(() => {
    const reporter: Reporter = context;
    const names: Names = { from: first.name, to: second.name };
    const bill = createBill();
    const failed$ = new ReplaySubject<MillraceError>(1);
    /** Chunks that do not decide the race, such as the usage of a model before its content. */
    const aside$ = new Subject<ModelChunk>();
    const aside = emitTo(aside$);
    let failures = 0;
    let isAsked = false;
    /** Why the second model answers, if no event has reported it yet. */
    let why: MillraceError | undefined;
    const first$ = contender$(first, request, context, {
      read$: (chunk, isAnswer) => {
        const shown = bill.ofFirst(chunk);
        return isAnswer ? [...bill.conceded(), shown] : aside([shown]);
      },
      failed$: (failure) => {
        failures += 1;
        if (failures === 2 || (!isAsked && !failure.retryable)) throw failure;
        if (why !== undefined) why = failure;
        failed$.next(failure);
        return NEVER;
      },
    });
    const another$ = contender$(second, request, context, {
      read$: (chunk, isAnswer) => {
        if (!isAnswer) return bill.hold(chunk);
        if (why !== undefined) reporter.report({ type: 'modelFallback', ...names, error: why });
        why = undefined;
        return [...bill.voided(), ...bill.held(), chunk];
      },
      failed$: (failure) => {
        failures += 1;
        const news$ = aside(bill.conceded());
        if (failures === 2) throw failure;
        return concat(news$, NEVER);
      },
    });
    const second$ = merge(failed$, openTime$(afterMs, context)).pipe(
      take(1),
      concatMap((failure) => {
        isAsked = true;
        if (failure === undefined) why = slowness(names, afterMs);
        const news$ = defer(() => {
          reporter.report(askedEvent(names, afterMs, failure));
          return failure === undefined ? EMPTY : aside(bill.voided());
        });
        // An observer of the event may unsubscribe: then the second model is not asked.
        return concat(news$, another$);
      }),
    );
    return merge(aside$, race(first$, second$).pipe(finalize(() => aside$.complete())));
  });

const askedEvent = (names: Names, waitedMs: number, failure: MillraceError | undefined): Hedged =>
  failure === undefined
    ? { type: 'modelHedged', ...names, waitedMs }
    : { type: 'modelFallback', ...names, error: failure };

/** Emits chunks to an Observable, and nothing here. */
const emitTo =
  (aside$: Subject<ModelChunk>) =>
  (chunks: readonly ModelChunk[]): Observable<never> => {
    chunks.forEach((chunk) => aside$.next(chunk));
    return EMPTY;
  };

interface Contender {
  readonly read$: (chunk: ModelChunk, isAnswer: boolean) => ObservableInput<ModelChunk>;
  /** The model has failed before its answer. */
  readonly failed$: (failure: MillraceError) => Observable<ModelChunk>;
}

const contender$ = (
  model: Model,
  request: ModelRequest,
  context: ModelContext,
  { read$, failed$ }: Contender,
): Observable<ModelChunk> => {
  let isAnswer = false;
  return defer(() => model.stream$(forModel(model, request, context), context)).pipe(
    restoreAsyncContext(),
    concatMap((chunk) => read$(chunk, (isAnswer ||= decides(chunk)))),
    throwIfEmpty(() => incomplete(model)),
    catchError((cause: unknown) => {
      if (isAnswer) throw cause;
      return failed$(failureOf(`The model '${model.name}'`, cause));
    }),
  );
};

type Tokens = Partial<Usage>;

/** The usage of both models. */
const createBill = () => {
  /** The usage of each model, that of earlier attempts of the second one, and all of it once it has lost. */
  let spent: Tokens = {};
  let spare: Tokens = {};
  let past: Tokens = {};
  let lost: Tokens = {};
  /** The chunks of the second model before its answer. */
  const head: ModelChunk[] = [];
  return {
    /** A chunk of the first model, whose usage includes that of the other one once that has lost. */
    ofFirst: (chunk: ModelChunk): ModelChunk => {
      if (chunk.type === 'restart') spent = lost = {};
      if (chunk.type !== 'usage') return chunk;
      spent = { ...spent, ...chunk.usage };
      return { ...chunk, usage: sum(spent, lost) };
    },
    /** Holds a chunk of the second model back until its answer. */
    hold: (chunk: ModelChunk): readonly ModelChunk[] => {
      if (chunk.type === 'usage') spare = { ...spare, ...chunk.usage };
      if (chunk.type === 'restart') [past, spare] = [sum(past, spare), {}];
      head.push(chunk);
      return [];
    },
    held: (): readonly ModelChunk[] => head.splice(0),
    /** Adds what the second model has spent to the usage of the first one. */
    conceded: (): readonly ModelChunk[] => {
      const more = sum(past, spare);
      if (!isSome(more)) return [];
      spare = past = {};
      lost = more;
      return [{ type: 'usage', usage: sum(spent, lost) }];
    },
    /** Ends what the first model has spent: the totals of the second one are its own. */
    voided: (): readonly ModelChunk[] => {
      if (!isSome(spent)) return [];
      spent = {};
      return [{ type: 'restart', why: 'Another model answers.' }];
    },
  };
};

/** Emits once demand has been open for so long, all in all. */
const openTime$ = (ms: number, { demand, scheduler }: ModelContext): Observable<undefined> =>
  defer(() => {
    let left = ms;
    return demand.open$.pipe(
      switchMap((isOpen) => {
        if (!isOpen) return NEVER;
        const since = scheduler.now();
        return timer(left, scheduler).pipe(
          finalize(() => {
            // A clock that is set back adds nothing.
            left = Math.max(0, left - Math.max(0, scheduler.now() - since));
          }),
        );
      }),
      take(1),
      map(() => undefined),
    );
  });

/** Whether a chunk shows that a model answers. Heartbeats, empty deltas and usage do not. */
const decides = (chunk: ModelChunk): boolean => {
  switch (chunk.type) {
    case 'text':
      return chunk.text !== '';
    case 'thinking':
      return chunk.text !== '' || chunk.signature !== undefined;
    case 'usage':
    case 'restart':
      return false;
    default:
      return true;
  }
};

const isSome = (usage: Tokens): boolean => Object.keys(usage).length > 0;

const sum = (usage: Tokens, other: Readonly<Record<string, number>>): Tokens => ({
  ...other,
  ...Object.fromEntries(
    Object.entries(usage).map(([name, tokens]) => [name, tokens + (other[name] ?? 0)]),
  ),
});

const slowness = ({ from, to }: Names, ms: number): MillraceError =>
  new MillraceError(
    'timeout',
    `The model '${from}' did not start to answer within ${ms} ms, and '${to}' was faster.`,
  );

const incomplete = ({ name }: Model): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `The stream of the model '${name}' ended without an answer.`,
  );

/** Drops what this model cannot take, with a warning for each. */
const forModel = (
  { name, unsupported = [] }: Model,
  request: ModelRequest,
  { report }: ModelContext,
): ModelRequest =>
  unsupported
    .filter((option) => request[option] !== undefined)
    .reduce<ModelRequest>((left, option) => {
      const message = `The model '${name}' does not support '${option}'. The option was dropped.`;
      report({ type: 'warning', message });
      const { [option]: _, ...rest } = left;
      return rest;
    }, request);
