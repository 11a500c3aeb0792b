import type { CallSummary } from 'millrace/journal';
import type { Colors } from '../presentation/theme.js';

/** The status of a run, as it is printed. */
export type RunStatus = 'running' | 'ended' | 'failed' | 'suspended' | 'unfinished' | 'unreadable';

/** A run that a signal has ended is unfinished, too. */
export const statusOf = (run: CallSummary): RunStatus => {
  if (run.status === 'unfinished') return 'unfinished';
  if (run.status === 'failed' && run.reason === 'aborted') return 'unfinished';
  return run.status;
};

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
    case 'unfinished':
      return colors.yellow;
  }
};
