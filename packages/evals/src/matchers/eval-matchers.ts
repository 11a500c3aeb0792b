import { MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import type { Tolerances } from '../baseline.js';
import { type CalledToolsOptions, type ExpectedCall, scoreOfCalls } from '../called-tools.js';
import { type BaselineCheck, checkBaseline } from '../file/check-baseline.js';
import { describeChanges, evalTable } from '../table.js';
import type { EvalSummary } from '../results.js';
import type { AnyRun } from 'millrace';

/** The least values of an evaluation, from 0 to 1. */
export interface LeastScores {
  /** The least mean of each scorer, by name. */
  readonly scores?: Readonly<Record<string, number>>;
  readonly passRate?: number;
}

/** The matchers, for the types of your test runner. `R` is what a matcher returns. */
export interface EvalMatchers<R = unknown> {
  /** Of a reply: whether it called these tools, in this order, and no others. The options relax that. */
  toCallTools(expected: readonly ExpectedCall[], options?: CalledToolsOptions): R;
  /** Of a summary: whether it has no errors, and each value is at least this. */
  toReach(least: LeastScores): R;
  /**
   * Of a summary: whether nothing got worse than the baseline in a file. A missing file is written, unless the variable `CI` is
   * set; `MILLRACE_EVALS=update` writes it again.
   */
  toMatchBaseline(file: string | URL, tolerances?: Tolerances): R;
}

interface Outcome {
  readonly pass: boolean;
  readonly message: () => string;
}

/**
 * Matchers for `expect.extend(evalMatchers)` of Jest and Vitest. They throw if what they get is no reply or no summary.
 *
 * @example
 * ```ts
 * expect.extend(evalMatchers);
 * expect(await agent.call('Refund order A-17.')).toCallTools(['find_order', 'refund']);
 * ```
 */
export const evalMatchers = {
  toCallTools: (
    received: unknown,
    expected: readonly ExpectedCall[],
    options: CalledToolsOptions = {},
  ): Outcome => {
    if (!hasToolCalls(received)) throw wrong('toCallTools()', 'a reply');
    const { score, reason } = scoreOfCalls(received, expected, options);
    return {
      pass: score === 1,
      message: () => reason ?? 'Expected other tool calls than these, but the reply has them.',
    };
  },
  toReach: (received: unknown, least: LeastScores): Outcome => {
    if (!isSummary(received)) throw wrong('toReach()', 'a summary of evaluate()');
    const problems = problemsOf(received, least);
    return {
      pass: problems.length === 0,
      message: () =>
        problems.length === 0
          ? `Expected lower values.\n\n${evalTable(received)}`
          : `${problems.join('\n')}\n\n${evalTable(received)}`,
    };
  },
  toMatchBaseline: (
    received: unknown,
    file: string | URL,
    tolerances: Tolerances = {},
  ): Outcome => {
    if (!isSummary(received)) throw wrong('toMatchBaseline()', 'a summary of evaluate()');
    const update = process.env['MILLRACE_EVALS'] === 'update';
    const isCi = !['', '0', 'false'].includes(process.env['CI'] ?? '');
    const check = checkBaseline(received, file, { update, isCi, tolerances });
    return {
      pass:
        check.status === 'written' ||
        (check.status === 'compared' && !check.comparison.isRegression),
      message: () => `${messageFor(check, String(file))}\n\n${evalTable(received)}`,
    };
  },
};

const problemsOf = (summary: EvalSummary, { scores = {}, passRate }: LeastScores): string[] => [
  ...(summary.errors === 0 ? [] : ['Calls or scorers failed.']),
  ...Object.entries(scores).flatMap(([name, least]) => {
    if (!Object.hasOwn(summary.scores, name)) {
      const known = Object.keys(summary.scores).join(', ');
      throw new MillraceError(
        'config',
        `toReach(): there is no scorer '${name}'. There are: ${known}.`,
      );
    }
    const mean = summary.scores[name]?.mean ?? 0;
    return mean >= least
      ? []
      : [`Expected ${name} of at least ${least}, but it is ${mean.toFixed(2)}.`];
  }),
  ...(passRate === undefined || summary.passRate >= passRate
    ? []
    : [`Expected a pass rate of at least ${passRate}, but it is ${summary.passRate.toFixed(2)}.`]),
];

const messageFor = (check: BaselineCheck, file: string): string => {
  switch (check.status) {
    case 'compared': {
      const lines = describeChanges(check.comparison);
      return check.comparison.isRegression
        ? `The evaluation is worse than its baseline:\n${lines.join('\n')}`
        : 'Expected an evaluation that is worse than its baseline.';
    }
    case 'written':
      return `The baseline '${file}' was written.`;
    case 'missing':
      return `There is no baseline '${file}', and none is written if the variable CI is set. Run the test on your machine, and commit the file.`;
    case 'refused':
      return 'The baseline was not written, because calls or scorers failed.';
  }
};

const hasToolCalls = (value: unknown): value is { readonly toolCalls: readonly AnyRun[] } =>
  isRecord(value) && Array.isArray(value['toolCalls']);

const isSummary = (value: unknown): value is EvalSummary =>
  isRecord(value) && value['type'] === 'summary' && Array.isArray(value['cases']);

const wrong = (matcher: string, what: string): MillraceError =>
  new MillraceError(
    'config',
    `${matcher} needs ${what}. Pass evaluate(…).pipe(summary()) to lastValueFrom() for a summary.`,
  );
