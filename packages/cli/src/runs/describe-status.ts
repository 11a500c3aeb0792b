import type { CallSummary } from '@millrace/core/journal';
import type { Colors } from '../presentation/theme.js';

/** What became of a run, as people are told it. */
export type RunStatus = 'running' | 'ended' | 'failed' | 'suspended' | 'broken off' | 'unreadable';

/** Tells what became of a run. One that a signal has ended was broken off, too. */
export const statusOf = (run: CallSummary): RunStatus => {
  if (run.status === 'unfinished') return 'broken off';
  if (run.status === 'failed' && run.reason === 'aborted') return 'broken off';
  return run.status;
};

/** The colour of each. */
export const statusColor = (status: RunStatus, colors: Colors): ((text: string) => string) => {
  switch (status) {
    case 'running':
      return colors.cyan;
    case 'ended':
      return colors.green;
    case 'failed':
    case 'unreadable':
      return colors.red;
    case 'suspended':
    case 'broken off':
      return colors.yellow;
  }
};
