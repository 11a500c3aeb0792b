import {
  addUsage,
  type Input,
  type MillraceError,
  noUsage,
  type Reply,
  type Usage,
} from 'millrace';
import type { ScoreResult } from './score.js';

/** The cost of calls, if the option `cost` computes it, or the layer `cost` of the agent. */
export interface TrialCost {
  /** Absent if a part of it is unknown: a model without a price, or a failed call that reports no cost. */
  readonly cost?: number;
  /** The part that is known. Absent if nothing is. */
  readonly costAtLeast?: number;
}

/** One call for a case, and its scores. */
export interface TrialResult extends TrialCost {
  /** From 1 to the number of repeats. */
  readonly trial: number;
  /** The reply, unless the call failed. */
  readonly reply?: Reply;
  /** The error of a failed call. */
  readonly error?: MillraceError;
  /** The result of each scorer. Empty if the call failed. */
  readonly scores: Readonly<Record<string, ScoreResult>>;
  /** Whether the call succeeded, and every score reached `passAt`. */
  readonly passed: boolean;
  /** The duration of the call without its scorers, in milliseconds of the scheduler. */
  readonly ms: number;
}

/** The scores of one scorer over several trials. A failed call counts as 0; a failed scorer does not count. */
export interface ScoreStatistics {
  /** The mean; `undefined` if every score failed. */
  readonly mean: number | undefined;
  /** The sample standard deviation; 0 for fewer than two scores. */
  readonly spread: number;
  /** How often the scorer failed. */
  readonly errors: number;
}

/** The sums of trials. Divide sums by `trialCount` for means. */
export interface EvalTotals extends TrialCost {
  readonly trialCount: number;
  /** By name of the scorer, in the order of the scorers. */
  readonly scores: Readonly<Record<string, ScoreStatistics>>;
  /** The part of the trials that passed, from 0 to 1. */
  readonly passRate: number;
  /** Failed calls and failed scorers. */
  readonly errors: number;
  /** The sum of the usage of all replies. */
  readonly usage: Usage;
  /** The sum of the usage that scorers report, such as that of judges. */
  readonly scorerUsage: Usage;
  /** The sum of the iterations of all replies. */
  readonly iterations: number;
  /** The sum of the durations of all calls, in milliseconds. */
  readonly ms: number;
}

/** The result of one case, when all its trials have ended. */
export interface CaseResult extends EvalTotals {
  readonly type: 'case';
  readonly id: string;
  /** The place of the case in the list, from 0. */
  readonly index: number;
  /** The number of cases of the evaluation. */
  readonly caseCount: number;
  readonly input: Input;
  readonly expected: unknown;
  /** In the order of their numbers. */
  readonly trials: readonly TrialResult[];
}

/** The result of an evaluation. */
export interface EvalSummary extends EvalTotals {
  readonly type: 'summary';
  readonly name: string;
  /** In the order of the list of cases, however they ended. */
  readonly cases: readonly CaseResult[];
}

export type EvalEvent = CaseResult | EvalSummary;

/** Adds up results of cases, such as those of an evaluation that was stopped. */
export const summarize = (name: string, cases: readonly CaseResult[]): EvalSummary => {
  const ordered = [...cases].sort((a, b) => a.index - b.index);
  const trials = ordered.flatMap((it) => it.trials);
  const scorers = [...new Set(ordered.flatMap(({ scores }) => Object.keys(scores)))];
  return { type: 'summary', name, cases: ordered, ...totalsOf(trials, scorers) };
};

export const totalsOf = (
  trials: readonly TrialResult[],
  scorers: readonly string[],
): EvalTotals => {
  const replies = trials.flatMap(({ reply }) => (reply === undefined ? [] : [reply]));
  const results = trials.flatMap(({ scores }) => Object.values(scores));
  const usages = results.flatMap((it) =>
    it.status === 'scored' && it.usage !== undefined ? [it.usage] : [],
  );
  const failed = results.filter(({ status }) => status === 'failed');
  return {
    trialCount: trials.length,
    scores: Object.fromEntries(
      scorers.map((name) => [
        name,
        statisticsOf(
          trials.map(({ scores }) => (Object.hasOwn(scores, name) ? scores[name] : undefined)),
        ),
      ]),
    ),
    passRate: meanOf(trials.map(({ passed }) => Number(passed))) ?? 0,
    errors: trials.length - replies.length + failed.length,
    usage: replies.map(({ usage }) => usage).reduce(addUsage, noUsage),
    scorerUsage: usages.reduce(addUsage, noUsage),
    iterations: sumOf(replies.map(({ iterations }) => iterations)),
    ms: sumOf(trials.map(({ ms }) => ms)),
    ...costOf(trials),
  };
};

const costOf = (trials: readonly TrialResult[]): TrialCost => {
  const known = trials.flatMap(({ costAtLeast }) => costAtLeast ?? []);
  const totals = trials.flatMap(({ cost }) => cost ?? []);
  return {
    ...(totals.length === trials.length && totals.length > 0 && { cost: sumOf(totals) }),
    ...(known.length > 0 && { costAtLeast: sumOf(known) }),
  };
};

/** A failed call has no result, and counts as 0. */
const statisticsOf = (results: readonly (ScoreResult | undefined)[]): ScoreStatistics => {
  const values = results.flatMap((it) => {
    if (it === undefined) return [0];
    return it.status === 'scored' ? [it.score] : [];
  });
  const mean = meanOf(values);
  const squares = values.map((value) => (value - (mean ?? 0)) ** 2);
  return {
    mean,
    spread: values.length < 2 ? 0 : Math.sqrt(sumOf(squares) / (values.length - 1)),
    errors: results.length - values.length,
  };
};

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

const meanOf = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : sumOf(values) / values.length;

/** The mean number of tokens of a trial, of all kinds. */
export const tokensPerTrial = ({ usage, trialCount }: EvalTotals): number =>
  trialCount === 0 ? 0 : sumOf(Object.values(usage)) / trialCount;
