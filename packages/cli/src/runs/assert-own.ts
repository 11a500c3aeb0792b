import { MillraceError } from '@millrace/core';
import type { CallSummary, ReadableCall } from '@millrace/core/journal';
import { assistantName } from '../create-assistant.js';

/** Throws for an unreadable run, and for a run of another agent, whose tools and instructions are missing here. */
export function assertOwn(run: CallSummary): asserts run is ReadableCall {
  if (run.status === 'unreadable') {
    throw new MillraceError('invalidRequest', `This run cannot be read: ${run.why}`);
  }
  if (run.agent === assistantName) return;
  throw new MillraceError(
    'invalidRequest',
    `This run belongs to the agent '${run.agent}', which this command does not have. Resume it in the program of that agent: journal(store).resume$(agent, '${run.callId}').`,
  );
}
