import { calls$, type CallSummary } from 'millrace/journal';
import { asyncScheduler, firstValueFrom, lastValueFrom, take, toArray } from 'rxjs';
import type { RunsArguments } from '../command-line/arguments.js';
import { isHumanOutput } from '../presentation/presenter.js';
import { printableJson, printableName } from '../presentation/printable.js';
import type { Theme } from '../presentation/theme.js';
import type { Setting } from '../setting.js';
import { statusOf } from './describe-status.js';
import { findRun$ } from './find-run.js';
import { commandFor, hint } from './hints.js';
import type { RunStore } from './open-run-store.js';
import { runsTable } from './runs-table.js';
import { shortId } from './run-id.js';
import { showRun } from './show-run.js';
import { describePlace, missingNote } from './store-place.js';
import { withRuns } from './with-runs.js';

/** Lists the runs of a store, or shows one of them. Resolves to the exit code. */
export const showRuns = (setting: Setting<RunsArguments>): Promise<number> =>
  withRuns(setting, async (runs) => {
    const { given } = setting;
    if (given.run === '') await list(runs, setting);
    else await showRun(await firstValueFrom(findRun$(runs, given.run)), runs, setting);
    return 0;
  });

const list = async (
  { store, place }: RunStore,
  { given, environment, output, theme }: Setting<RunsArguments>,
): Promise<void> => {
  const { limit } = given;
  // One more than shown, to know whether there are more.
  const found = await lastValueFrom(calls$(store).pipe(take(limit + 1), toArray()));
  const shown = found.slice(0, limit);
  const write = (text: string): void => void output.stream.write(text);
  if (given.json) {
    for (const run of shown) write(`${printableJson(JSON.stringify(run))}\n`);
    return;
  }
  if (given.quiet) {
    for (const { callId } of shown) write(`${printableName(callId)}\n`);
    return;
  }
  if (shown.length === 0) {
    const where = `${describePlace(place)}${missingNote(place)}`;
    write(
      `${hint(`There are no runs in ${where}. Ask something:`, 'npx @millrace/cli "2 + 2"', theme)}\n`,
    );
    return;
  }
  const { scheduler = asyncScheduler } = environment;
  write(runsTable(shown, theme, scheduler.now()));
  const notes = [...brokenOff(shown, given, theme), ...(found.length > limit ? [moreNote] : [])];
  if (isHumanOutput(given) && notes.length > 0) {
    write(`\n${notes.map((note) => `${theme.colors.dim(note)}\n`).join('')}`);
  }
};

const moreNote = 'There are more: use --limit <number> or --all.';

/** Maximum number of hints to resume a run. */
const mostNotes = 3;

const brokenOff = (
  runs: readonly CallSummary[],
  given: RunsArguments,
  theme: Theme,
): readonly string[] => {
  const ids = runs.map(({ callId }) => callId);
  return runs
    .filter((run) => statusOf(run) === 'unfinished')
    .slice(0, mostNotes)
    .map(({ callId }) =>
      hint(
        `${shortId(callId, ids)} is unfinished. Resume it:`,
        commandFor('resume', callId, given),
        theme,
      ),
    );
};
