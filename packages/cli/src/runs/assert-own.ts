import { MillraceError } from '@millrace/core';
import type { CallSummary, ReadableCall } from '@millrace/core/journal';
import { assistantName } from '../create-assistant.js';

/** Refuses to go on with what cannot be read, or with a run of another agent: its tools and instructions are not here. */
export function assertOwn(run: CallSummary): asserts run is ReadableCall {
  if (run.status === 'unreadable') {
    throw new MillraceError('invalidRequest', `This run cannot be read: ${run.why}`);
  }
  if (run.agent === assistantName) return;
  throw new MillraceError(
    'invalidRequest',
    `This run is one of the agent '${run.agent}', which is not here. Resume it in the program that has it: journal(store).resume$(agent, '${run.callId}').`,
  );
}
