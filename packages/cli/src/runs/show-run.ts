import { isEvent } from 'millrace';
import { type CallSummary, replay$, type StepSummary, steps$ } from 'millrace/journal';
import { from, lastValueFrom, reduce, toArray } from 'rxjs';
import type { RunsArguments } from '../command-line/arguments.js';
import { marblePicture } from '../marbles/marble-picture.js';
import { milliseconds } from '../presentation/milliseconds.js';
import { present } from '../presentation/present.js';
import { oneLine } from '../presentation/shorten.js';
import type { Theme } from '../presentation/theme.js';
import type { Setting } from '../setting.js';
import { statusColor, statusOf } from './describe-status.js';
import { commandFor } from './hints.js';
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
      pictured,
      `\n${stepsTable(steps, theme)}`,
      `\n${theme.colors.dim(forkNote(run, given))}\n`,
    ].join(''),
  );
};

const headOf = (run: CallSummary, about: string | undefined, { colors }: Theme): string => {
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
  return facts.join('  ');
};

const forkNote = (run: CallSummary, given: RunsArguments): string =>
  statusOf(run) === 'unfinished'
    ? `It is unfinished. Resume it: ${commandFor('resume', run.callId, given)}`
    : `Repeat a part of it: ${commandFor('fork', run.callId, given)} --at <step>`;

const stepsTable = (steps: readonly StepSummary[], theme: Theme): string => {
  const widest = Math.max(4, ...steps.map(({ id }) => id.length));
  const wide = Math.min(widest, Math.floor(theme.width / 2));
  const line = (id: string, kind: string, summary: string): string => {
    const room = Math.max(theme.width - wide - 11, 20);
    return `${oneLine(id, Math.max(wide, id.length), theme).padEnd(wide)}  ${kind.padEnd(7)}  ${oneLine(summary, room, theme)}`.trimEnd();
  };
  const rows = steps.map(({ id, kind, summary }) => line(id, kind, summary));
  return [theme.colors.dim(line('step', 'kind', 'result')), ...rows]
    .map((row) => `${row}\n`)
    .join('');
};
