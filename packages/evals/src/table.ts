import type { MillraceError } from 'millrace';
import { checkOptions, isFlag, untrustedText, wholeNumber } from 'millrace/values';
import type { EvalChange, EvalComparison } from './baseline.js';
import {
  type CaseResult,
  type EvalSummary,
  type EvalTotals,
  type ScoreStatistics,
  tokensPerTrial,
  type TrialCost,
  type TrialResult,
} from './results.js';

export interface EvalTableOptions {
  /** Maximum width of a line, in characters. At least 20. Default: 80. */
  readonly width?: number | undefined;
  /** Whether to show durations. Default: true. */
  readonly time?: boolean | undefined;
}

/**
 * Formats an evaluation as plain text: a line for each case with its mean scores (`±` the standard deviation of repeats), its pass
 * rate, tokens and time per trial; then the errors, with the number of trials. If the columns do not fit, each case is a block of lines.
 */
export const evalTable = (summary: EvalSummary, options: EvalTableOptions = {}): string => {
  checkOptions('evalTable()', options, { width: wholeNumber(20), time: isFlag });
  const { width = 80, time = true } = options;
  const rows = [...summary.cases, summary].map((it) => rowOf(it, time));
  const body = fittingTable(rows, width) ?? blocks(rows, width);
  return [...body, ...errorLines(summary, width)].map((line) => line.trimEnd()).join('\n');
};

/** The title of a row, and its cells by the heading of their column. */
interface Row {
  readonly title: string;
  readonly cells: readonly (readonly [heading: string, text: string])[];
}

const rowOf = (result: CaseResult | EvalSummary, hasTime: boolean): Row => ({
  title: result.type === 'case' ? oneLine(result.id) : countOf(result.cases.length, 'case'),
  cells: [
    ...Object.entries(result.scores).map(
      ([name, it]) => [oneLine(name), scoreCell(it, result)] as const,
    ),
    ['pass', percent(result.passRate)],
    ['tokens', tokensPerTrial(result).toFixed(0)],
    ...(hasTime ? [['time', duration(result.ms / Math.max(result.trialCount, 1))] as const] : []),
    ...costCell(result).map((it) => ['cost', it] as const),
  ],
});

/** Empty if no cost is known. */
const costCell = ({ cost, costAtLeast }: TrialCost): readonly string[] => {
  if (cost !== undefined) return [cost.toPrecision(3)];
  return costAtLeast === undefined ? [] : [`at least ${costAtLeast.toPrecision(3)}`];
};

const scoreCell = (
  { mean, spread, errors }: ScoreStatistics,
  { trialCount }: EvalTotals,
): string => {
  const mark = errors > 0 ? ' !' : '';
  if (mean === undefined) return trialCount === 0 ? '' : `error${mark}`;
  return `${mean.toFixed(2)}${spread > 0 ? ` ±${spread.toFixed(2)}` : ''}${mark}`;
};

const percent = (rate: number): string => `${Math.round(rate * 100)} %`;

const duration = (ms: number): string =>
  ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;

const countOf = (count: number, noun: string): string =>
  `${count} ${noun}${count === 1 ? '' : 's'}`;

// ---------------------------------------------------------------- layout

/** The title is not shortened below this. */
const leastTitle = 12;
const gap = 2;

/** `undefined` if the columns do not fit. */
const fittingTable = (rows: readonly Row[], width: number): readonly string[] | undefined => {
  const headings = [...new Set(rows.flatMap(({ cells }) => cells.map(([heading]) => heading)))];
  const table = [
    headings,
    ...rows.map(({ cells }) => headings.map((it) => new Map(cells).get(it) ?? '')),
  ];
  const wide = headings.map((_heading, column) =>
    Math.max(...table.map((cells) => lengthOf(cells[column] ?? ''))),
  );
  const used = wide.reduce((sum, one) => sum + one + gap, 0);
  const longest = Math.max(...rows.map(({ title }) => lengthOf(title)));
  const room = Math.min(longest, width - used);
  if (room < Math.min(longest, leastTitle)) return undefined;
  const line = (title: string, cells: readonly string[]): string =>
    [
      padded(clip(title, room), room),
      ...cells.map((text, column) => `${' '.repeat((wide[column] ?? 0) - lengthOf(text))}${text}`),
    ].join(' '.repeat(gap));
  return table.map((cells, at) => line(rows[at - 1]?.title ?? '', cells));
};

/** A title and its cells below it, as many in a line as fit. */
const blocks = (rows: readonly Row[], width: number): readonly string[] =>
  rows.flatMap(({ title, cells }) => [
    clip(title, width),
    ...wrapped(
      cells.map(([heading, text]) => clip(`${heading} ${text}`, width - gap)),
      width - gap,
    ).map((line) => `${' '.repeat(gap)}${line}`),
  ]);

const wrapped = (parts: readonly string[], width: number): readonly string[] =>
  parts.reduce<readonly string[]>((lines, part) => {
    const last = lines.at(-1);
    const longer = `${last ?? ''} · ${part}`;
    return last === undefined || lengthOf(longer) > width
      ? [...lines, part]
      : [...lines.slice(0, -1), longer];
  }, []);

const lengthOf = (text: string): number => Array.from(text).length;

const padded = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - lengthOf(text)));

const clip = (text: string, width: number): string =>
  lengthOf(text) <= width
    ? text
    : `${Array.from(text)
        .slice(0, width - 1)
        .join('')}…`;

/** Text of models and tools must not control the terminal. */
const oneLine = (text: string): string =>
  untrustedText(text, { labels: false }).replaceAll(/\s+/g, ' ').trim();

// ---------------------------------------------------------------- errors

/** Maximum number of errors that a table lists. */
const maxErrors = 10;

const errorLines = ({ cases, errors }: EvalSummary, width: number): readonly string[] => {
  if (errors === 0) return [];
  const groups = groupedErrors(cases);
  const left = groups.length - maxErrors;
  return [
    '',
    `${countOf(errors, 'error')}:`,
    ...groups.slice(0, maxErrors).flatMap(({ what, message, count }) => {
      const times = count === 1 ? '' : ` (${count} times)`;
      return [clip(`  ${what}${times}`, width), ...folded(message, width - 4)];
    }),
    ...(left > 0 ? [`  … ${left} more`] : []),
  ];
};

interface ErrorGroup {
  readonly what: string;
  readonly message: string;
  readonly count: number;
}

/** Trials of a case often fail for one reason. */
const groupedErrors = (cases: readonly CaseResult[]): readonly ErrorGroup[] => {
  const groups = new Map<string, ErrorGroup>();
  for (const { id, trials } of cases) {
    for (const { code, message } of trials.flatMap(errorsOf)) {
      const what = `${oneLine(id)}: ${code}`;
      const key = `${what}\n${message}`;
      const count = (groups.get(key)?.count ?? 0) + 1;
      groups.set(key, { what, message: oneLine(message), count });
    }
  }
  return [...groups.values()];
};

const errorsOf = ({ error, scores }: TrialResult): readonly MillraceError[] => [
  ...(error === undefined ? [] : [error]),
  ...Object.values(scores).flatMap((it) => (it.status === 'failed' ? [it.error] : [])),
];

/** Maximum number of lines of a message. */
const maxLines = 4;

const folded = (text: string, width: number): readonly string[] => {
  const lines = text.split(' ').reduce<readonly string[]>((done, word) => {
    const last = done.at(-1);
    const longer = last === undefined ? word : `${last} ${word}`;
    return last === undefined || lengthOf(longer) > width
      ? [...done, clip(word, width)]
      : [...done.slice(0, -1), longer];
  }, []);
  const shown = lines.slice(0, maxLines);
  return shown.map(
    (line, at) =>
      `    ${at === maxLines - 1 && lines.length > maxLines ? clip(`${line} …`, width) : line}`,
  );
};

// ---------------------------------------------------------------- comparison

/** Formats the changes of a comparison, one line each, worse ones first. Empty without changes. */
export const describeChanges = ({ changes }: EvalComparison): readonly string[] => {
  const of = (verdict: EvalChange['verdict']): readonly string[] =>
    changes.filter((it) => it.verdict === verdict).map((it) => `${verdict}: ${lineOf(it)}`);
  return [...of('worse'), ...of('better'), ...of('new')];
};

const lineOf = ({ id, measure, scorer, before, after, verdict }: EvalChange): string => {
  const where = oneLine(id);
  if (measure === 'case') return verdict === 'new' ? where : `${where} is missing`;
  const name = {
    score: oneLine(scorer ?? ''),
    passRate: 'pass rate',
    errors: 'errors',
    tokens: 'tokens',
  };
  const show = (value: number | undefined): string => {
    if (value === undefined) return 'none';
    if (measure === 'passRate') return percent(value);
    return measure === 'score' ? value.toFixed(2) : String(value);
  };
  return `${where}: ${name[measure]} ${show(before)} → ${show(after)}`;
};
