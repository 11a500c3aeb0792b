import type { ReportedPayload } from '../events.js';
import { cell, type Locals } from '../step.js';
import { MillraceError } from '../values/errors.js';
import type { Message } from '../values/message.js';
import { paired, unpaired } from '../values/pairing.js';

/** Whether a history with open tool calls is refused. */
export const strictness = cell('call', () => ({ isStrict: false }));

/** A history in which each tool call has its result, with a `warning` if some had none; an error if it is strict. */
export const repaired = (
  history: readonly Message[],
  { hooks, local }: Reporting,
): readonly Message[] => {
  const fault = unpaired(history);
  if (fault === undefined) return history;
  if (local(strictness).isStrict) {
    throw new MillraceError(
      'memory',
      `The history contains ${fault}. Without strictHistory(), Millrace repairs it.`,
    );
  }
  const message = `The history contains ${fault}. Tool calls without a result got an error result.`;
  hooks.report(0, { type: 'warning', message });
  return paired(history);
};

interface Reporting {
  readonly hooks: { readonly report: (iteration: number, event: ReportedPayload) => void };
  readonly local: Locals;
}
