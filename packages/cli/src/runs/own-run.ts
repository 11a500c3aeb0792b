import { MillraceError } from 'millrace';
import type { CallSummary, ReadableCall } from 'millrace/journal';
import { assistantName } from '../create-assistant.js';

/** Whether a run can be read and is one of the command's own agent. */
export const isOwn = (run: CallSummary): run is ReadableCall =>
  run.status !== 'unreadable' && run.agent === assistantName;

/** Where to resume a run that is not of the command's own agent. */
export const resumeElsewhere = (run: CallSummary): string =>
  run.status === 'unreadable'
    ? `This run cannot be read: ${run.why}`
    : `This run belongs to the agent '${run.agent}', which this command does not have. Resume it in the program of that agent: journal(store).resume$(agent, '${run.callId}').`;

/** Throws for an unreadable run, and for a run of another agent, whose tools and instructions are missing here. */
export function assertOwn(run: CallSummary): asserts run is ReadableCall {
  if (!isOwn(run)) throw new MillraceError('invalidRequest', resumeElsewhere(run));
}
