import {
  answerTool,
  type Demand,
  isMillraceError,
  MillraceError,
  type Model,
  type ModelChunk,
  type ModelContext,
  type ModelReport,
  type ModelRequest,
  type Usage,
} from '@millrace/core';
import { checkOptions, having, isDelay } from '@millrace/core/values';
import {
  catchError,
  concat,
  concatMap,
  connect,
  defer,
  EMPTY,
  finalize,
  map,
  merge,
  type MonoTypeOperatorFunction,
  NEVER,
  type Observable,
  race,
  ReplaySubject,
  type SchedulerLike,
  switchMap,
  take,
  takeWhile,
  tap,
  timer,
  toArray,
} from 'rxjs';

export interface HedgeOptions {
  /** How long the first model may be silent before the second one is asked too, in milliseconds. */
  readonly afterMs: number;
}

declare module '@millrace/core' {
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
 * retryable. If both fail, it errors with the last error. The usage that the loser reported is added to the answer. Cold,
 * as every model; the time-outs of the call apply to both models together.
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
  const { name, unsupported = [], toolsInPrompt } = models[0];
  return {
    name,
    unsupported: unsupported.filter((option) => models[1].unsupported?.includes(option)),
    ...(toolsInPrompt !== undefined && { toolsInPrompt }),
    stream$: (request, context) => answer$(models, afterMs, request, context),
  };
};

const aModel = having('stream$', "a model, such as openai('gpt-5-mini')");

const rules = { first: aModel, second: aModel, afterMs: isDelay };

const structured = (model: Model): Model =>
  model.unsupported?.includes('outputSchema') === true ? answerTool(model) : model;

type Hedged = ModelReport | { type: 'modelHedged'; from: string; to: string; waitedMs: number };

/** A context that reports any event: the loop passes on every type, and `ModelReport` is the closed list of core. */
interface Reporter {
  report(event: Hedged): void;
}

const answer$ = (
  [first, second]: readonly [Model, Model],
  afterMs: number,
  request: ModelRequest,
  context: ModelContext,
): Observable<ModelChunk> =>
  defer(() => {
    const { demand, scheduler } = context;
    const reporter: Reporter = context;
    const [from, to] = [first.name, second.name];
    const failed$ = new ReplaySubject<MillraceError>(1);
    const spent: [Partial<Usage>, Partial<Usage>] = [{}, {}];
    let failures = 0;
    let isAsked = false;
    /** Why the second model answers, if no event has reported it yet. */
    let why: MillraceError | undefined;

    const contender$ = (model: Model, nth: 0 | 1, onFailure: (failure: MillraceError) => void) =>
      defer(() => {
        let lost: Partial<Usage> | undefined;
        return defer(() => model.stream$(forModel(model, request, context), context)).pipe(
          tap((chunk) => {
            if (chunk.type === 'usage') spent[nth] = { ...spent[nth], ...chunk.usage };
            // The next attempt has totals of its own.
            if (chunk.type === 'restart' && lost !== undefined) lost = {};
          }),
          fromContent(
            (head) => {
              lost = spent[nth === 0 ? 1 : 0];
              if (nth === 1 && why !== undefined) {
                reporter.report({ type: 'modelFallback', from, to, error: why });
              }
              const whole = head.map((chunk) => withUsage(chunk, lost));
              return isSome(lost) ? [{ type: 'usage', usage: lost }, ...whole] : whole;
            },
            (chunk) => withUsage(chunk, lost),
          ),
          catchError((cause: unknown) => {
            if (lost !== undefined) throw cause;
            const failure = asError(cause, model);
            failures += 1;
            if (failures === 2) throw failure;
            onFailure(failure);
            return NEVER;
          }),
        );
      });
    const first$ = contender$(first, 0, (failure) => {
      if (!isAsked && !failure.retryable) throw failure;
      if (why !== undefined) why = failure;
      failed$.next(failure);
    });
    const second$ = merge(failed$, openTime$(afterMs, demand, scheduler)).pipe(
      take(1),
      concatMap((failure) => {
        isAsked = true;
        if (failure === undefined) why = slowness(from, to, afterMs);
        const news$ = defer(() => {
          reporter.report(
            failure === undefined
              ? { type: 'modelHedged', from, to, waitedMs: afterMs }
              : { type: 'modelFallback', from, to, error: failure },
          );
          return EMPTY;
        });
        // An observer of the event may unsubscribe: then the second model is not asked.
        return concat(
          news$,
          contender$(second, 1, () => undefined),
        );
      }),
    );
    return race(first$, second$);
  });

/** Emits once demand has been open for so long, all in all. */
const openTime$ = (ms: number, demand: Demand, scheduler: SchedulerLike): Observable<undefined> =>
  defer(() => {
    let left = ms;
    return demand.open$.pipe(
      switchMap((isOpen) => {
        if (!isOpen) return NEVER;
        const since = scheduler.now();
        return timer(left, scheduler).pipe(
          finalize(() => {
            left = Math.max(0, left - (scheduler.now() - since));
          }),
        );
      }),
      take(1),
      map(() => undefined),
    );
  });

/** Emits nothing before the first content or the finish, then that head, changed, and each later chunk, changed. */
const fromContent =
  (
    changeHead: (head: readonly ModelChunk[]) => readonly ModelChunk[],
    change: (chunk: ModelChunk) => ModelChunk,
  ): MonoTypeOperatorFunction<ModelChunk> =>
  (source) =>
    source.pipe(
      connect((chunk$) =>
        concat(
          chunk$.pipe(
            takeWhile((chunk) => !decides(chunk), true),
            toArray(),
            concatMap(changeHead),
          ),
          chunk$.pipe(map(change)),
        ),
      ),
    );

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

/** Adds the usage of the loser to a total that the winner reports. */
const withUsage = (chunk: ModelChunk, lost: Partial<Usage> = {}): ModelChunk =>
  chunk.type === 'usage' && isSome(lost) ? { ...chunk, usage: sum(chunk.usage, lost) } : chunk;

const isSome = (usage: Partial<Usage>): boolean => Object.keys(usage).length > 0;

const sum = (usage: Partial<Usage>, other: Readonly<Record<string, number>>): Partial<Usage> =>
  Object.fromEntries(
    Object.entries(usage).map(([name, tokens]) => [name, tokens + (other[name] ?? 0)]),
  );

const slowness = (from: string, to: string, ms: number): MillraceError =>
  new MillraceError(
    'timeout',
    `The model '${from}' did not start to answer within ${ms} ms, and '${to}' was faster.`,
  );

const asError = (cause: unknown, { name }: Model): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError(
        'unknown',
        `The model '${name}' failed: ${cause instanceof Error ? cause.message : String(cause)}`,
        { cause },
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
