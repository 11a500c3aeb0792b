import { callBegunBy, callOfStep } from './call-of-step.js';
import { interruptStep } from './interrupt-step.js';
import { seatStep } from './seat-step.js';
import type { StoredStep } from './stored-steps.js';

/**
 * Leaves out what came from outside behind all that is kept of a call: an interrupt, and what became of the place that it waited for. They have changed nothing that is kept, and
 * would change what is done anew. Those that kept steps have come of stay.
 */
export const withoutLateSignals = (kept: readonly StoredStep[]): readonly StoredStep[] => {
  const calls = new Set(kept.flatMap(({ record }) => callBegunBy(record.name) ?? []));
  const latest = new Map<string, number>();
  for (const { record } of kept) {
    const call = callOfStep(record.name, calls);
    if (!isSignal(record.name)) {
      latest.set(call, Math.max(latest.get(call) ?? 0, record.position));
    }
  }
  return kept.filter(
    ({ record: { name, position } }) =>
      !isSignal(name) || position < (latest.get(callOfStep(name, calls)) ?? 0),
  );
};

const isSignal = (name: string): boolean =>
  [interruptStep, seatStep].some((step) => name.endsWith(`/${step}`));
