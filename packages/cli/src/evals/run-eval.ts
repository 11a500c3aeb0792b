import { basename, dirname, extname, join } from 'node:path';
import {
  concat,
  EMPTY,
  firstValueFrom,
  map,
  merge,
  of,
  takeWhile,
  tap,
  type TapObserver,
  toArray,
} from 'rxjs';
import type { EvalEvent, EvalSummary } from '@millrace/evals';
import type { BaselineCheck } from '@millrace/evals/file';
import type { EvalArguments } from '../command-line/arguments.js';
import { exitCodes, wrongUsage } from '../exit-codes.js';
import { printable, printableJson } from '../presentation/printable.js';
import { wrapFor } from '../presentation/wrap.js';
import type { Setting } from '../setting.js';
import { eventLine } from './eval-json.js';
import { loadEval, type LoadedEval } from './load-eval.js';

/** Runs evaluations one after another, and compares each with its baseline. Resolves to the exit code. */
export const runEval = async (setting: Setting<EvalArguments>): Promise<number> => {
  const { given, environment, errorTheme } = setting;
  let code = 0;
  for (const file of given.files) {
    const loaded = await loadEval(file, environment.directory);
    if ('problem' in loaded) {
      const hint = '(for more information: npx @millrace/cli eval --help)';
      environment.stderr.write(wrapFor(`error: ${loaded.problem}\n${hint}\n`, errorTheme));
      return wrongUsage;
    }
    // A damaged baseline must not be found after the calls, which cost money.
    if (!given.update) loaded.evals.hasBaseline(baselineFor(loaded.path));
    const ended = await play(setting, loaded);
    if (ended.stopped !== undefined) return exitCodes[ended.stopped];
    code = Math.max(code, ended.code);
  }
  return code;
};

type Stop = 'interrupted' | 'terminated';

interface Ended {
  readonly code: number;
  /** The signal that stopped it. */
  readonly stopped?: Stop | undefined;
}

/** Runs one evaluation until it ends, or a signal arrives, and shows what there is by then. */
const play = async (setting: Setting<EvalArguments>, loaded: LoadedEval): Promise<Ended> => {
  const { given, environment, output, errorTheme } = setting;
  const { interrupt$, terminate$ = EMPTY, stderr } = environment;
  const { event$, evals, label } = loaded;
  const end = (stopped?: Stop): End => ({ type: 'end', stopped });
  const all = await firstValueFrom(
    merge(
      output.broken$,
      // Before the evaluation, which may emit cases as it starts.
      interrupt$.pipe(map(() => end('interrupted'))),
      terminate$.pipe(map(() => end('terminated'))),
      concat(event$.pipe(tap(watching(setting, label))), of(end())),
    ).pipe(
      takeWhile((it) => it.type !== 'end', true),
      toArray(),
    ),
  );
  const cases = all.filter((it) => it.type === 'case');
  const summary = all.find((it) => it.type === 'summary');
  const result = summary ?? evals.summarize(label, cases);
  output.stream.write(
    given.json ? eventLine(result, label) : shown(setting, result, loaded, summary === undefined),
  );
  if (summary !== undefined) return { code: settle(setting, summary, loaded) };
  const count = cases[0] === undefined ? '' : ` of ${cases[0].caseCount}`;
  const why = `Stopped after ${cases.length}${count} cases. Nothing was compared.`;
  stderr.write(`${wrapFor(errorTheme.colors.yellow(why), errorTheme)}\n`);
  return { code: 1, stopped: all.find((it) => it.type === 'end')?.stopped };
};

interface End {
  readonly type: 'end';
  readonly stopped: Stop | undefined;
}

/** Shows cases as they end: as lines of JSON, or in a terminal as a count that is replaced. */
const watching = (
  { given, environment: { stderr }, output }: Setting<EvalArguments>,
  label: string,
): Partial<TapObserver<EvalEvent>> => {
  const isLive = !given.json && stderr.isTTY === true;
  const clear = (): void => {
    if (isLive) stderr.write(clearLine);
  };
  let count = 0;
  return {
    next: (event) => {
      if (event.type !== 'case') return;
      count += 1;
      if (given.json) output.stream.write(eventLine(event, label));
      else if (isLive) stderr.write(`${clearLine}${count} of ${event.caseCount} cases`);
    },
    finalize: clear,
  };
};

/** Returns to the start of the line, and clears it. */
const clearLine = '\r\u001b[K';

const shown = (
  { theme: { width } }: Setting,
  result: EvalSummary,
  { label, evals }: LoadedEval,
  isPartial: boolean,
): string => {
  const table = isPartial && result.cases.length === 0 ? '' : evals.evalTable(result, { width });
  return `${[printable(label), table].join('\n').trimEnd()}\n`;
};

// ---------------------------------------------------------------- baseline

/** Compares an evaluation that has ended with its baseline. Returns the exit code. */
const settle = (
  { given, environment, output, theme }: Setting<EvalArguments>,
  summary: EvalSummary,
  { label, path, evals }: LoadedEval,
): number => {
  const file = baselineFor(path);
  const { update, tolerance, tokenTolerance } = given;
  const isCi = !['', '0', 'false'].includes(environment.env['CI'] ?? '');
  const tolerances = { score: tolerance, passRate: tolerance, tokens: tokenTolerance };
  const check = evals.checkBaseline(summary, file, { update, isCi, tolerances });
  const changes = check.status === 'compared' ? check.comparison.changes : [];
  const isFine =
    summary.errors === 0 &&
    (check.status === 'written' || (check.status === 'compared' && !check.comparison.isRegression));
  if (given.json) {
    const line = { type: 'baseline', file: label, status: check.status, isFine, changes };
    output.stream.write(`${printableJson(JSON.stringify(line))}\n`);
    return isFine ? 0 : 1;
  }
  const { colors } = theme;
  const lines = check.status === 'compared' ? evals.describeChanges(check.comparison) : [];
  const verdict = verdictOf(check, baselineName(path), label, isFine);
  output.stream.write(
    `\n${(isFine ? colors.green : colors.red)(printable(verdict))}\n${lines.map((it) => `  ${it}\n`).join('')}`,
  );
  return isFine ? 0 : 1;
};

/** `support.eval.mjs` has the baseline `support.eval.json`. */
const baselineName = (path: string): string => `${basename(path, extname(path))}.json`;

const baselineFor = (path: string): string => join(dirname(path), baselineName(path));

const verdictOf = (check: BaselineCheck, name: string, label: string, isFine: boolean): string => {
  const accept = `npx @millrace/cli eval ${label} --update`;
  switch (check.status) {
    case 'written':
      return `Wrote the baseline ${name}. Commit it.`;
    case 'missing':
      return `There is no baseline ${name}, and none is written if the variable CI is set. Run ${accept} on your machine, and commit it.`;
    case 'refused':
      return 'No baseline was written, because calls or scorers failed.';
    case 'compared':
      if (isFine) return `No regression from ${name}.`;
      return check.comparison.isRegression
        ? `Worse than ${name}. To accept this: ${accept}`
        : 'Calls or scorers failed.';
  }
};
