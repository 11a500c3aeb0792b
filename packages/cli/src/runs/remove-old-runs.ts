import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CallSummary, prune$ } from '@millrace/core/journal';
import { lastValueFrom } from 'rxjs';
import type { AnswerArguments } from '../command-line/arguments.js';
import { assistantName } from '../create-assistant.js';
import { describeError } from '../presentation/describe-error.js';
import type { RunStore } from './open-run-store.js';
import type { Setting } from '../setting.js';

const dayMs = 86_400_000;

/** Days for which runs are kept, unless the caller says otherwise. */
const keepDays = 30;

/**
 * Removes runs of this command that have ended long ago, once the answer is there: at once where the caller says how long, else in a directory once a day. What others
 * keep in a database is theirs. That it fails is told, and costs nothing else.
 */
export const removeOldRuns = async (
  runs: RunStore | undefined,
  { given, environment, errorTheme }: Setting<AnswerArguments>,
): Promise<void> => {
  if (runs === undefined) return;
  try {
    if (given.keepDays === undefined && !(await isDue(runs))) return;
    const olderThanMs = (given.keepDays ?? keepDays) * dayMs;
    const keep = (run: CallSummary): boolean =>
      run.status === 'unreadable' || run.agent !== assistantName;
    await lastValueFrom(prune$(runs.store, { olderThanMs, keep }), { defaultValue: undefined });
  } catch (error) {
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
