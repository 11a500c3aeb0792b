import {
  type CallOptions,
  type Input,
  isMillraceError,
  MillraceError,
  type Reply,
  watch,
} from 'millrace';
import type {} from 'millrace/traffic';
import {
  checkOptions,
  type Complete,
  defined,
  having,
  isDelay,
  isFunction,
  isRecord,
  isText,
  messageOf,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import {
  asyncScheduler,
  catchError,
  concatMap,
  connect,
  defer,
  filter,
  from,
  groupBy,
  map,
  merge,
  mergeMap,
  type Observable,
  type ObservableInput,
  of,
  type OperatorFunction,
  queueScheduler,
  type SchedulerLike,
  subscribeOn,
  take,
  takeLast,
  throwIfEmpty,
  toArray,
} from 'rxjs';
import {
  type CaseResult,
  type EvalEvent,
  type EvalSummary,
  summarize,
  totalsOf,
  type TrialCost,
  type TrialResult,
} from './results.js';
import { type EvalTrial, inputText, type Scorer, type ScoreResult, score$ } from './score.js';

/** One question to an agent. */
export interface EvalCase<Expected = unknown> {
  /** Identifies the case in the table and in the baseline. Unique. Default: the text of the input. */
  readonly id?: string;
  readonly input: Input;
  /** For the scorers: the right answer, or what they need to know. The agent does not see it. */
  readonly expected?: Expected;
  /** Options of the call, such as `metadata` or `context`. */
  readonly options?: CallOptions;
}

/** The evaluated program: an agent, a session, or a function that emits one reply, such as one that reads a journal. */
export type EvalTarget =
  | { call$(input: Input, options?: CallOptions): Observable<Reply> }
  | ((input: Input, options: CallOptions) => ObservableInput<Reply>);

/** The scorers of an evaluation, by name. */
export type Scorers<Expected = unknown> = Readonly<Record<string, Scorer<Expected>>>;

export interface EvaluateOptions {
  /** The name in tables and baselines. Default: `evaluation`. */
  readonly name?: string | undefined;
  /** How often each case is called. Default: 1. */
  readonly repeats?: number | undefined;
  /** Maximum number of trials at the same time. Default: 4. */
  readonly concurrency?: number | undefined;
  /** A trial passes if every score is at least this, from 0 to 1. Default: 0.5. */
  readonly passAt?: number | undefined;
  /** How long a scorer may take, in milliseconds. Default: 60,000. */
  readonly scorerMs?: number | undefined;
  /** Computes the cost of a call, in a currency of yours; that of a failed call is unknown. Default: what the layer `cost` of the agent reports, also for failed calls. */
  readonly cost?: ((reply: Reply) => number) | undefined;
  /** The scheduler of all calls, time-outs and durations. Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Calls an agent with each case, and scores the replies. Emits the result of each case when its last trial has ended, then the
 * summary, and completes. A call or a scorer that fails is a result: it does not end the evaluation. The scorers of a trial run one
 * after another. Cold: each subscription is an evaluation, and unsubscribing aborts the running calls. Throws `config` if an
 * argument is invalid.
 *
 * @example
 * ```ts
 * import { createAgent } from 'millrace';
 * import { scriptedModel, text } from 'millrace/testing';
 * import { evalTable, evaluate, exactAnswer, summary } from '@millrace/evals';
 *
 * const agent = createAgent({ model: scriptedModel([text('4')]) });
 * evaluate(agent, [{ input: '2 + 2?', expected: '4' }], { correct: exactAnswer() })
 *   .pipe(summary())
 *   .subscribe((result) => console.log(evalTable(result)));
 * ```
 */
export const evaluate = <Expected = unknown>(
  target: EvalTarget,
  cases: readonly EvalCase<Expected>[],
  scorers: Scorers<Expected>,
  options: EvaluateOptions = {},
): Observable<EvalEvent> => {
  checkOptions('evaluate()', options, rules);
  const call$ = callOf(target);
  checkScorers(scorers);
  const named = checkedCases(cases);
  const setting = { ...defaults, ...defined(options) };
  const { name, repeats, concurrency } = setting;
  const work = named.flatMap((given, index) =>
    Array.from({ length: repeats }, (_, at) => ({ given, index, trial: at + 1 })),
  );
  const toCase = (index: number, trials: readonly TrialResult[]): CaseResult[] =>
    named.slice(index, index + 1).map(({ id, input, expected }) => ({
      ...{ type: 'case', id, index, caseCount: named.length, input, expected },
      trials: [...trials].sort((a, b) => a.trial - b.trial),
      ...totalsOf(trials, Object.keys(scorers)),
    }));
  return from(work).pipe(
    mergeMap(
      ({ given, index, trial }) =>
        trial$(call$, given, trial, scorers, setting).pipe(
          map((result) => ({ index, result })),
          // Calls that end synchronously would nest in each other.
          subscribeOn(queueScheduler),
        ),
      concurrency,
    ),
    groupBy(({ index }) => index),
    mergeMap((group) =>
      group.pipe(
        take(repeats),
        map(({ result }) => result),
        toArray(),
        mergeMap((trials) => toCase(group.key, trials)),
      ),
    ),
    connect((case$) =>
      merge(
        case$,
        case$.pipe(
          toArray(),
          map((ended) => summarize(name, ended)),
        ),
      ),
    ),
  );
};

/** Emits the summary of an evaluation, and leaves out the cases. Completes with the evaluation. */
export const summary = (): OperatorFunction<EvalEvent, EvalSummary> =>
  filter((event) => event.type === 'summary');

// ---------------------------------------------------------------- one trial

type Call = (input: Input, options: CallOptions) => ObservableInput<Reply>;

type Setting = Complete<Omit<EvaluateOptions, 'cost' | 'scheduler'>> &
  Pick<EvaluateOptions, 'cost' | 'scheduler'>;

type NamedCase<Expected> = EvalCase<Expected> & { readonly id: string };

type Ended = Pick<TrialResult, 'reply' | 'error' | 'ms' | keyof TrialCost>;

const trial$ = <Expected>(
  call: Call,
  given: NamedCase<Expected>,
  trial: number,
  scorers: Scorers<Expected>,
  setting: Setting,
): Observable<TrialResult> =>
  ended$(call, given, setting).pipe(
    concatMap((ended) => {
      const { reply, ms } = ended;
      if (reply === undefined) return of({ trial, ...ended, scores: {}, passed: false });
      const { id, input, expected } = given;
      return scores$({ id, input, expected, reply, trial, ms }, scorers, setting).pipe(
        map((scores) => ({ trial, ...ended, scores, passed: hasPassed(scores, setting) })),
      );
    }),
  );

/** Emits the reply or the error of a call. */
const ended$ = (
  call: Call,
  { input, options }: EvalCase,
  { scheduler, cost }: Setting,
): Observable<Ended> =>
  defer(() => {
    const clock = scheduler ?? asyncScheduler;
    const startedAt = clock.now();
    const elapsed = (): number => Math.max(0, clock.now() - startedAt);
    let failed: TrialCost = {};
    const watching = watch((event, { parent }) => {
      if (event.type === 'failedCallCost' && parent === undefined) failed = reported(event.cost);
    });
    const use = [...(options?.use ?? []), watching];
    return defer(() => call(input, { ...options, use, ...defined({ scheduler }) })).pipe(
      // A call is recorded after its reply.
      takeLast(1),
      throwIfEmpty(noReply),
      map((reply): Ended => {
        if (!isReply(reply)) throw noReply();
        return { reply, ms: elapsed(), ...costOf(reply, cost) };
      }),
      catchError((error: unknown) =>
        of({ error: callError(error), ms: elapsed(), ...(cost === undefined && failed) }),
      ),
    );
  });

const isReply = (value: unknown): boolean =>
  isRecord(value) && typeof value['text'] === 'string' && Array.isArray(value['toolCalls']);

const noReply = (): MillraceError =>
  new MillraceError(
    'config',
    'The target of evaluate() emitted no reply. A function must emit the reply of a call, as agent.call$() does.',
  );

const callError = (cause: unknown): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError('unknown', `The call failed: ${messageOf(cause)}`, { cause });

/** Emits the results of all scorers, by name. */
const scores$ = <Expected>(
  trial: EvalTrial<Expected>,
  scorers: Scorers<Expected>,
  { scorerMs, scheduler = asyncScheduler }: Setting,
): Observable<Readonly<Record<string, ScoreResult>>> =>
  from(Object.entries(scorers)).pipe(
    concatMap(([name, scorer]) =>
      score$(name, scorer, trial, { scorerMs, scheduler }).pipe(
        map((result) => [name, result] as const),
      ),
    ),
    toArray(),
    map((entries) => Object.fromEntries(entries)),
  );

const hasPassed = (scores: TrialResult['scores'], { passAt }: Setting): boolean =>
  Object.values(scores).every((it) => it.status === 'scored' && it.score >= passAt);

const costOf = (reply: Reply, cost: EvaluateOptions['cost']): TrialCost => {
  if (cost === undefined) return reported('cost' in reply ? reply.cost : undefined);
  const value = cost(reply);
  if (Number.isFinite(value) && value >= 0) return { cost: value, costAtLeast: value };
  throw new MillraceError('config', "evaluate(): 'cost' must return a number of at least 0.");
};

/** The cost in a reply or an event, of the layer `cost`. */
const reported = (given: unknown): TrialCost => {
  const { total, atLeast = total } = isRecord(given) ? given : {};
  return {
    ...(typeof total === 'number' && { cost: total }),
    ...(typeof atLeast === 'number' && { costAtLeast: atLeast }),
  };
};

// ---------------------------------------------------------------- checks

const defaults = { name: 'evaluation', repeats: 1, concurrency: 4, passAt: 0.5, scorerMs: 60_000 };

const rules: Readonly<Record<keyof EvaluateOptions, Rule>> = {
  name: isText,
  repeats: wholeNumber(1),
  concurrency: wholeNumber(1),
  passAt: [
    (value) => typeof value === 'number' && value >= 0 && value <= 1,
    'a number from 0 to 1',
  ],
  scorerMs: isDelay,
  cost: isFunction,
  scheduler: having('schedule', 'an RxJS scheduler'),
};

const misuse = (message: string): MillraceError =>
  new MillraceError('config', `evaluate(): ${message}`);

const callOf = (target: EvalTarget): Call => {
  if (typeof target === 'function') return target;
  // A caller without types may pass anything.
  if (typeof Reflect.get(Object(target), 'call$') === 'function') {
    return (input, options) => target.call$(input, options);
  }
  throw misuse('the first argument must be an agent, or a function that emits a reply.');
};

const checkScorers = (scorers: unknown): void => {
  if (!isRecord(scorers) || Object.keys(scorers).length === 0) {
    throw misuse('pass scorers as an object of functions, such as { correct: exactAnswer() }.');
  }
  const [wrong] = Object.entries(scorers).find(([, it]) => typeof it !== 'function') ?? [];
  if (wrong !== undefined) throw misuse(`the scorer '${wrong}' must be a function.`);
};

const checkedCases = <Expected>(
  cases: readonly EvalCase<Expected>[],
): readonly NamedCase<Expected>[] => {
  // The guard of `isArray` would make the cases `any`.
  const isList: boolean = Array.isArray(cases);
  if (!isList || cases.length === 0) {
    throw misuse("pass a list of at least one case, such as [{ input: '2 + 2?', expected: '4' }].");
  }
  const named = cases.map((given, index) => ({ ...given, id: idOf(given, index) }));
  const ids = named.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice === undefined) return named;
  throw misuse(`two cases have the id '${twice}'. Give each an 'id' of its own.`);
};

const idOf = (given: unknown, index: number): string => {
  if (!isRecord(given) || given['input'] === undefined) {
    throw misuse(`case ${index + 1} has no 'input'.`);
  }
  const { id = inputText(given['input']) } = given;
  if (typeof id === 'string' && id.trim() !== '') return id.trim();
  throw misuse(`case ${index + 1} needs an 'id': a string that is not empty.`);
};
