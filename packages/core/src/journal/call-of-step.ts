import { callStep } from './call-record.js';
import { interruptStep } from './interrupt-step.js';
import { seatStep } from './seat-step.js';

/** The call that has run a step, by what is known of the calls of a log: each has an id that begins the ids of its steps. */
export const callOfStep = (name: string, calls: Pick<ReadonlySet<string>, 'has'>): string => {
  let at = name.lastIndexOf('/');
  while (at > 0 && !calls.has(name.slice(0, at))) at = name.lastIndexOf('/', at - 1);
  return name.slice(0, Math.max(0, at));
};

/** The call that a step is one of the first of: no call has others before it. */
export const callBegunBy = (name: string): string | undefined => {
  const at = name.lastIndexOf('/');
  return at > 0 && firstSteps.has(name.slice(at + 1)) ? name.slice(0, at) : undefined;
};

const firstSteps: ReadonlySet<string> = new Set([
  callStep,
  seatStep,
  interruptStep,
  'prepare',
  'open',
]);
