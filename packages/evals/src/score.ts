import { type Input, isMillraceError, MillraceError, type Reply, type Usage } from 'millrace';
import { isRecord, messageOf } from 'millrace/values';
import {
  catchError,
  defer,
  finalize,
  from,
  map,
  type Observable,
  type ObservableInput,
  of,
  type SchedulerLike,
  takeLast,
  throwError,
  throwIfEmpty,
  timeout,
} from 'rxjs';

/** The input of a scorer: a case, and the reply to it. */
export interface EvalTrial<Expected = unknown> {
  /** The id of the case. */
  readonly id: string;
  readonly input: Input;
  /** The `expected` of the case; `undefined` if it has none. */
  readonly expected: Expected | undefined;
  readonly reply: Reply;
  /** The number of the trial, from 1 to the number of repeats. */
  readonly trial: number;
  /** The duration of the call, in milliseconds of the scheduler. */
  readonly ms: number;
}

export interface ScorerContext {
  /** Aborts when the score is there, at the time-out, and when the evaluation is unsubscribed. */
  readonly signal: AbortSignal;
  /** The scheduler of the evaluation. */
  readonly scheduler: SchedulerLike;
}

/** A score with its reason. Other fields are ignored, so scorers of other libraries can return theirs. */
export interface Score {
  /** From 0 (bad) to 1 (good). */
  readonly score: number | boolean;
  /** Explains the score to people. */
  readonly reason?: string;
  /** The tokens that the scorer used, if it asked a model. */
  readonly usage?: Usage;
}

/** A number from 0 to 1, true for 1, false for 0, or an object with a reason. */
export type GivenScore = number | boolean | Score;

/** Scores a reply. Throw an error if the reply cannot be scored. */
export type Scorer<Expected = unknown> = (
  trial: EvalTrial<Expected>,
  context: ScorerContext,
) => GivenScore | ObservableInput<GivenScore>;

/** The result of one scorer in one trial. */
export type ScoreResult =
  | {
      readonly status: 'scored';
      readonly score: number;
      readonly reason?: string;
      readonly usage?: Usage;
    }
  | { readonly status: 'failed'; readonly error: MillraceError };

/** The text of an input: of all its messages and blocks. */
export const inputText = (input: unknown): string => {
  if (typeof input === 'string') return input;
  if (Array.isArray(input)) return input.map(inputText).join(' ');
  if (!isRecord(input)) return '';
  return typeof input['text'] === 'string' ? input['text'] : inputText(input['content']);
};

/**
 * Runs a scorer: emits one result and completes, also if the scorer throws or returns no score. A Promise or an Observable has
 * `scorerMs` milliseconds. Cold.
 */
export const score$ = <Expected>(
  name: string,
  scorer: Scorer<Expected>,
  trial: EvalTrial<Expected>,
  { scorerMs, scheduler }: { readonly scorerMs: number; readonly scheduler: SchedulerLike },
): Observable<ScoreResult> =>
  defer(() => {
    const abort = new AbortController();
    const given = scorer(trial, { signal: abort.signal, scheduler });
    if (!isLater(given)) return of(given);
    return from(given).pipe(
      takeLast(1),
      throwIfEmpty(() => noScore(name, 'completed without a score')),
      timeout({ first: scorerMs, scheduler, with: () => throwError(() => late(name, scorerMs)) }),
      finalize(() => abort.abort()),
    );
  }).pipe(
    map((given) => checkedScore(name, given)),
    catchError((cause: unknown) => of(failedScore(name, cause))),
  );

const isLater = (given: unknown): given is ObservableInput<GivenScore> =>
  typeof given === 'object' &&
  given !== null &&
  ['subscribe', 'then', Symbol.asyncIterator].some(
    (method) => typeof Reflect.get(given, method) === 'function',
  );

const checkedScore = (name: string, given: unknown): ScoreResult => {
  const { score, reason, usage } = isScoreLike(given) ? given : { score: given };
  const value = typeof score === 'boolean' ? Number(score) : score;
  if (typeof value !== 'number' || !(value >= 0 && value <= 1)) {
    throw noScore(name, `returned ${shown(score)}`);
  }
  return {
    status: 'scored',
    score: value,
    ...(typeof reason === 'string' && { reason }),
    ...(isUsage(usage) && { usage }),
  };
};

const isScoreLike = (
  given: unknown,
): given is { readonly score: unknown; readonly reason?: unknown; readonly usage?: unknown } =>
  isRecord(given) && 'score' in given;

const isUsage = (value: unknown): value is Usage =>
  isRecord(value) &&
  ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'].every((name) =>
    Number.isFinite(value[name]),
  );

/** A value that is no score may be large, or hold a secret: only numbers are shown. */
const shown = (value: unknown): string => {
  if (typeof value === 'number') return String(value);
  return value === null ? 'null' : `a value of type ${typeof value}`;
};

const noScore = (name: string, what: string): MillraceError =>
  new MillraceError(
    'config',
    `The scorer '${name}' ${what}. A score is a number from 0 to 1, true, false, or an object { score, reason }.`,
  );

const late = (name: string, ms: number): MillraceError =>
  new MillraceError(
    'timeout',
    `The scorer '${name}' returned no score within ${ms} ms. Set 'scorerMs' to give it more time.`,
  );

const failedScore = (name: string, cause: unknown): ScoreResult => ({
  status: 'failed',
  error: isMillraceError(cause)
    ? cause
    : new MillraceError('unknown', `The scorer '${name}' failed: ${messageOf(cause)}`, { cause }),
});
