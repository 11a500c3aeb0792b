import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Outcome } from '../ask.js';
import type { AnswerArguments } from '../command-line/arguments.js';
import { describeError } from '../presentation/describe-error.js';
import type { Setting } from '../setting.js';
import type { RunStore } from './open-run-store.js';

const dayMs = 86_400_000;

/** Days for which runs are kept, unless the caller says otherwise. */
const keepDays = 30;

/**
 * Removes what has ended long ago, once the answer is there: at once where the caller says how long, else in a directory once a day, and never in a database, which others may
 * use. That it fails is told, unless the answer has failed before, and costs nothing else.
 */
export const tidy = async (
  runs: RunStore | undefined,
  { given, environment, errorTheme }: Setting<AnswerArguments>,
  outcome: Outcome | 'failed' | 'ended',
): Promise<void> => {
  if (runs === undefined) return;
  try {
    if (given.keepDays === undefined && !(await isDue(runs))) return;
    const { removeOldRuns } = await import('./remove-old-runs.js');
    await removeOldRuns(runs, (given.keepDays ?? keepDays) * dayMs);
  } catch (error) {
    if (outcome === 'failed') return;
    environment.stderr.write(`${describeError(error, errorTheme)}\n`);
  }
};

/** Tells whether nothing has been removed in this directory for a day, and notes that it is now. */
const isDue = async ({ place }: RunStore): Promise<boolean> => {
  if (place.type !== 'files') return false;
  const note = join(place.directory, 'pruned');
  const before = await stat(note).catch(() => undefined);
  if (before !== undefined && before.mtimeMs > Date.now() - dayMs) return false;
  await writeFile(note, '', { mode: 0o600 });
  return true;
};
