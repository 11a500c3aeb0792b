import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Outcome } from '../ask.js';
import type { AnswerArguments } from '../command-line/arguments.js';
import { describeError } from '../presentation/describe-error.js';
import type { Setting } from '../setting.js';
import type { RunStore } from './open-run-store.js';

const dayMs = 86_400_000;

const keepDays = 30;

/**
 * Removes old runs after the answer: always with `--keep-days`, otherwise only on this machine and once a day, as others
 * may use a server. Prints its errors, unless the answer failed too, and does not affect the exit code.
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

/** Whether the last cleanup of this place is more than a day ago. If so, records the current one. */
const isDue = async ({ place }: RunStore): Promise<boolean> => {
  if (place.type !== 'files' && place.type !== 'sqlite') return false;
  const note = place.type === 'files' ? join(place.directory, 'pruned') : `${place.path}.pruned`;
  const before = await stat(note).catch(() => undefined);
  if (before !== undefined && before.mtimeMs > Date.now() - dayMs) return false;
  await writeFile(note, '', { mode: 0o600 });
  return true;
};
