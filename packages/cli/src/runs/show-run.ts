import { isEvent } from 'millrace';
import { type CallSummary, replay$, type StepSummary, steps$ } from 'millrace/journal';
import { from, lastValueFrom, reduce, toArray } from 'rxjs';
import type { RunsArguments } from '../command-line/arguments.js';
import { marblePicture } from '../marbles/marble-picture.js';
import { milliseconds } from '../presentation/milliseconds.js';
import { present } from '../presentation/present.js';
import { oneLine } from '../presentation/shorten.js';
import type { Theme } from '../presentation/theme.js';
import { wrapFor } from '../presentation/wrap.js';
import type { Setting } from '../setting.js';
import { statusColor, statusOf } from './describe-status.js';
import { commandFor, hint } from './hints.js';
import type { RunStore } from './open-run-store.js';
import { questionLine } from '../presentation/introduction.js';
import { runModel$ } from './run-model.js';
import { shortId } from './run-id.js';

/** Shows one run: its summary, its output, its marble diagram and its steps. With `--json`, prints it as one line. */
export const showRun = async (
  run: CallSummary,
  { store }: RunStore,
  { given, output, theme }: Setting<RunsArguments>,
): Promise<void> => {
  const { callId } = run;
  const steps = await lastValueFrom(steps$(store, callId).pipe(toArray()));
  if (given.json) {
    output.stream.write(`${JSON.stringify({ ...run, steps })}\n`);
    return;
  }
  const model = await lastValueFrom(runModel$(store, callId));
  const events = await lastValueFrom(replay$(store, callId, { speed: Infinity }).pipe(toArray()));
  const text = await lastValueFrom(
    from(events).pipe(
      present({ theme, unit: model?.unit ?? 'tokens' }),
      reduce((all, more) => all + more, ''),
    ),
  );
  // The output of a run that unfinished lacks the marble diagram.
  const last = events.at(-1);
  const isWhole =
    last !== undefined && isEvent(last, 'postCall', 'error') && last.callId === last.rootId;
  const pictured = isWhole ? text : `${text.trimEnd()}\n\n${marblePicture(events, theme)}\n`;
  output.stream.write(
    [
      `${headOf(run, model?.about, theme)}\n`,
      run.status === 'unreadable' ? '' : questionLine(run.question, theme),
      wrapFor(pictured, theme),
      `\n${stepsTable(steps, theme)}`,
      `\n${theme.colors.dim(forkNote(run, given, theme))}\n`,
    ].join(''),
  );
};

const headOf = (run: CallSummary, about: string | undefined, theme: Theme): string => {
  const { colors } = theme;
  const { callId, createdAt, updatedAt } = run;
  const status = statusOf(run);
  const facts = [
    callId,
    statusColor(status, colors)(status),
    new Date(createdAt).toISOString(),
    milliseconds(updatedAt - createdAt),
    ...(about === undefined ? [] : [about]),
    ...(run.status === 'unreadable' || run.forkedFrom === undefined
      ? []
      : [`forked from ${shortId(run.forkedFrom.callId)}`]),
  ];
  return wrapFor(facts.join('  '), theme);
};

const forkNote = (run: CallSummary, given: RunsArguments, theme: Theme): string =>
  statusOf(run) === 'unfinished'
    ? hint('It is unfinished. Resume it:', commandFor('resume', run.callId, given), theme)
    : hint('Repeat a part of it:', `${commandFor('fork', run.callId, given)} --at <step>`, theme);

/** One line for each step. If that leaves no room for results, each result has a line of its own. */
const stepsTable = (steps: readonly StepSummary[], theme: Theme): string => {
  const wide = Math.max(4, ...steps.map(({ id }) => id.length));
  const room = theme.width - wide - 11;
  const line = (id: string, kind: string, summary: string): string => {
    const head = `${id.padEnd(wide)}  ${kind.padEnd(7)}`;
    return room < leastRoom
      ? `${head.trimEnd()}\n  ${oneLine(summary, theme.width - 2, theme)}`
      : `${head}  ${oneLine(summary, room, theme)}`.trimEnd();
  };
  const rows = steps.map(({ id, kind, summary }) => line(id, kind, summary));
  return [theme.colors.dim(line('step', 'kind', 'result')), ...rows]
    .map((row) => `${row}\n`)
    .join('');
};

/** The columns that a result needs beside its step. */
const leastRoom = 16;
