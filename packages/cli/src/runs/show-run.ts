import { isEvent } from 'millrace';
import { type CallSummary, replay$, type StepSummary, steps$ } from 'millrace/journal';
import { from, lastValueFrom, reduce, toArray } from 'rxjs';
import type { RunsArguments } from '../command-line/arguments.js';
import { marblePicture } from '../marbles/marble-picture.js';
import { milliseconds } from '../presentation/milliseconds.js';
import { present } from '../presentation/present.js';
import { printableJson, printableName } from '../presentation/printable.js';
import { withPlainErrors } from '../presentation/to-json-lines.js';
import { oneLine } from '../presentation/shorten.js';
import type { Theme } from '../presentation/theme.js';
import { wrapFor } from '../presentation/wrap.js';
import type { Setting } from '../setting.js';
import { statusColor, statusOf } from './describe-status.js';
import { describeFailure, failureOf, resumeNote, toolErrorsIn } from './failure.js';
import { isOwn } from './find-run.js';
import { commandFor, hint } from './hints.js';
import type { RunStore } from './open-run-store.js';
import { questionLine } from '../presentation/introduction.js';
import { runModel } from './run-model.js';
import { shortId } from './run-id.js';

/** Shows one run: its summary, its output, its marble diagram, why it failed, and its steps. With `--json`, prints it as one line. */
export const showRun = async (
  run: CallSummary,
  { store }: RunStore,
  { given, output, theme }: Setting<RunsArguments>,
): Promise<void> => {
  const { callId } = run;
  const steps = await lastValueFrom(steps$(store, callId).pipe(toArray()));
  const model = runModel(run);
  const events =
    given.json && run.status === 'unreadable'
      ? []
      : await lastValueFrom(replay$(store, callId, { speed: Infinity }).pipe(toArray()));
  const failure = failureOf(events.at(-1));
  if (given.json) {
    const toolErrors = toolErrorsIn(events);
    const why = {
      ...(failure !== undefined && { error: failure }),
      ...(toolErrors.length > 0 && { toolErrors }),
    };
    output.stream.write(
      `${printableJson(JSON.stringify({ ...run, steps, ...why }, withPlainErrors))}\n`,
    );
    return;
  }
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
      failure === undefined ? '' : `\n${describeFailure(failure, run, given, theme)}`,
      `\n${stepsTable(steps, theme)}`,
      `\n${theme.colors.dim(goOnNote(run, given, theme))}\n`,
    ].join(''),
  );
};

const headOf = (run: CallSummary, about: string | undefined, theme: Theme): string => {
  const { colors } = theme;
  const { callId, createdAt, updatedAt } = run;
  const status = statusOf(run);
  const facts = [
    printableName(callId),
    statusColor(status, colors)(status),
    new Date(createdAt).toISOString(),
    milliseconds(updatedAt - createdAt),
    ...(about === undefined ? [] : [printableName(about)]),
    ...(run.status === 'unreadable' || run.forkedFrom === undefined
      ? []
      : [`forked from ${printableName(shortId(run.forkedFrom.callId))}`]),
  ];
  return wrapFor(facts.join('  '), theme);
};

const goOnNote = (run: CallSummary, given: RunsArguments, theme: Theme): string => {
  if (statusOf(run) === 'unfinished') return resumeNote(run, given, theme);
  if (!isOwn(run)) return wrapFor(forkElsewhere, theme);
  const fork = `${commandFor('fork', run.callId, given)} --at <step>`;
  return hint('Repeat a part of it:', fork, theme);
};

const forkElsewhere =
  'Repeat a part of it in the program of its agent: fork$(store, callId, { at }), then resume$.';

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
  const rows = steps.map(({ id, kind, summary }) =>
    line(printableName(id), printableName(kind), summary),
  );
  return [theme.colors.dim(line('step', 'kind', 'result')), ...rows]
    .map((row) => `${row}\n`)
    .join('');
};

/** The columns that a result needs beside its step. */
const leastRoom = 16;
