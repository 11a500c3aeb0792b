import { MillraceError } from 'millrace';
import { checkOptions, isRecord, numberFrom, parsedJson, type Rule } from 'millrace/values';
import { type CaseResult, type EvalSummary, tokensPerTrial } from './results.js';

/** How much worse a case may get before it is a regression. */
export interface Tolerances {
  /** How far the mean of a score may fall. Default: 0.05. */
  readonly score?: number | undefined;
  /** How far the pass rate of a case may fall. Default: 0.05. */
  readonly passRate?: number | undefined;
  /** By which part the tokens of a case may grow: 0.2 for 20 %. Default: any growth is allowed. */
  readonly tokens?: number | undefined;
}

/** A difference of one case from its baseline. */
export interface EvalChange {
  readonly verdict: 'worse' | 'better' | 'new';
  /** The id of the case. */
  readonly id: string;
  /** The measure that differs; `case` is the case itself, which is missing or new. */
  readonly measure: 'case' | 'score' | 'passRate' | 'errors' | 'tokens';
  /** The name of the scorer, if the measure is `score`. */
  readonly scorer?: string;
  /** `undefined` if the baseline does not have it. */
  readonly before?: number | undefined;
  /** `undefined` if the evaluation does not have it. */
  readonly after?: number | undefined;
}

export interface EvalComparison {
  /** Whether anything got worse by more than its tolerance, or is missing. */
  readonly isRegression: boolean;
  /** The cases in the order of the evaluation, then those that are missing. */
  readonly changes: readonly EvalChange[];
}

/** The measures of one case in a baseline. */
export interface Recorded {
  readonly id: string;
  readonly trials: number;
  readonly passRate: number;
  readonly errors: number;
  readonly tokens: number;
  readonly iterations: number;
  /** Means by scorer, `null` if all scores failed. */
  readonly scores: Readonly<Record<string, number | null>>;
}

/** The version of the format of baselines. */
const version = 1;

/**
 * Returns the baseline of an evaluation, as the text of a JSON file to commit. Equal results give equal text: cases and keys are
 * sorted, numbers are rounded, and it has no times and no answers.
 */
export const baselineOf = (summary: EvalSummary): string => {
  const cases = summary.cases.map(recorded).sort((a, b) => (a.id < b.id ? -1 : 1));
  const sorted = (_key: string, value: unknown): unknown =>
    isRecord(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return `${JSON.stringify({ version, name: summary.name, cases }, sorted, 2)}\n`;
};

const recorded = (result: CaseResult): Recorded => ({
  id: result.id,
  trials: result.trialCount,
  passRate: rounded(result.passRate),
  errors: result.errors,
  tokens: Math.round(tokensPerTrial(result)),
  iterations: rounded(result.iterations / result.trialCount),
  scores: Object.fromEntries(
    Object.entries(result.scores).map(([name, { mean }]) => [
      name,
      mean === undefined ? null : rounded(mean),
    ]),
  ),
});

const rounded = (value: number): number => Math.round(value * 10_000) / 10_000;

/**
 * Compares an evaluation with the text of a baseline, case by case. Worse is: a score or a pass rate that fell, more errors, and a
 * case or a scorer that is missing. A new one is no regression. Throws `config` if the text is no baseline.
 */
export const compareToBaseline = (
  summary: EvalSummary,
  baseline: string,
  tolerances: Tolerances = {},
): EvalComparison => compareToCases(summary, readBaseline(baseline, 'The baseline'), tolerances);

/** Compares an evaluation with a baseline that was read. */
export const compareToCases = (
  summary: EvalSummary,
  baseline: readonly Recorded[],
  tolerances: Tolerances = {},
): EvalComparison => {
  checkOptions('compareToBaseline()', tolerances, rules);
  const before = new Map(baseline.map((it) => [it.id, it]));
  const after = summary.cases.map(recorded);
  const ids = new Set(after.map(({ id }) => id));
  const missing = [...before.keys()].filter((id) => !ids.has(id));
  const changes = [
    ...after.flatMap((now): readonly EvalChange[] => {
      const then = before.get(now.id);
      return then === undefined
        ? [{ verdict: 'new', id: now.id, measure: 'case' }]
        : changesOf(then, now, tolerances);
    }),
    ...missing.map((id): EvalChange => ({ verdict: 'worse', id, measure: 'case' })),
  ];
  return { isRegression: changes.some(({ verdict }) => verdict === 'worse'), changes };
};

const rules: Readonly<Record<keyof Tolerances, Rule>> = {
  score: numberFrom(0),
  passRate: numberFrom(0),
  tokens: numberFrom(0),
};

const changesOf = (
  then: Recorded,
  now: Recorded,
  { score = 0.05, passRate = 0.05, tokens }: Tolerances,
): readonly EvalChange[] => {
  const { id } = now;
  const scorers = new Set([...Object.keys(now.scores), ...Object.keys(then.scores)]);
  const rates = { before: then.passRate, after: now.passRate };
  const errors = { before: then.errors, after: now.errors };
  const used = { before: then.tokens, after: now.tokens };
  const allowed = tokens === undefined ? Infinity : then.tokens * tokens;
  return [
    ...[...scorers].flatMap((scorer) => {
      const [before, after] = [scoreAt(then, scorer), scoreAt(now, scorer)];
      return changeOf({ id, measure: 'score', scorer, before, after }, 1, score);
    }),
    ...changeOf({ id, measure: 'passRate', ...rates }, 1, passRate),
    ...changeOf({ id, measure: 'errors', ...errors }, -1, 0),
    ...changeOf({ id, measure: 'tokens', ...used }, -1, allowed),
  ];
};

const scoreAt = ({ scores }: Recorded, scorer: string): number | undefined =>
  Object.hasOwn(scores, scorer) ? (scores[scorer] ?? undefined) : undefined;

/** `direction` is 1 if more is better, and -1 if less is. */
const changeOf = (
  change: Omit<EvalChange, 'verdict'>,
  direction: 1 | -1,
  tolerance: number,
): readonly EvalChange[] => {
  const { before, after } = change;
  if (after === undefined) return before === undefined ? [] : [{ ...change, verdict: 'worse' }];
  if (before === undefined) return [{ ...change, verdict: 'new' }];
  const gain = direction * (after - before);
  // Decimal fractions are inexact: 0.3 - 0.25 is less than 0.05.
  const limit = tolerance + 1e-9;
  if (gain < -limit) return [{ ...change, verdict: 'worse' }];
  return gain > limit ? [{ ...change, verdict: 'better' }] : [];
};

// ---------------------------------------------------------------- reading

/** Reads the text of a baseline. Throws `config`, which names `owner` and the mistake. */
export const readBaseline = (text: string, owner: string): readonly Recorded[] => {
  const damaged = (why: string): MillraceError =>
    new MillraceError(
      'config',
      `${owner} cannot be read: ${why}. Restore the file, or write it again with --update or MILLRACE_EVALS=update.`,
    );
  const value = parsedJson(text.replace(/^\ufeff/u, ''));
  if (!isRecord(value)) throw damaged('it is not a JSON object');
  if (value['version'] !== version) {
    throw damaged(`its 'version' must be ${version}, not ${JSON.stringify(value['version'])}`);
  }
  const { cases } = value;
  if (!Array.isArray(cases)) throw damaged("it has no list of 'cases'");
  const read = cases.map((it: unknown, index) => {
    if (isRecorded(it)) return it;
    throw damaged(`case ${index + 1} has a missing or invalid field`);
  });
  if (new Set(read.map(({ id }) => id)).size === read.length) return read;
  throw damaged('two cases have the same id');
};

const isRecorded = (value: unknown): value is Recorded =>
  isRecord(value) &&
  typeof value['id'] === 'string' &&
  ['trials', 'passRate', 'errors', 'tokens', 'iterations'].every((name) =>
    Number.isFinite(value[name]),
  ) &&
  isRecord(value['scores']) &&
  Object.values(value['scores']).every((score) => score === null || Number.isFinite(score));
