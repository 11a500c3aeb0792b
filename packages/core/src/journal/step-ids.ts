import { hasFields, isOptional, isString } from '../shape.js';
import type { StepForm } from '../step.js';
import { callStep } from './call-record.js';

/** The id of the step that an interrupt of a call is. It has no position: it comes from outside. */
export const interruptStep = 'interrupt';

/** What has become of a call that waited for its place in a session. */
export interface SeatRecord {
  /** It got the place, a later call had made it void, or it was interrupted while it waited, with a message. */
  readonly as: 'seated' | 'superseded' | 'interrupted';
  readonly message?: string;
}

/** The name of the step. Only of a call that was not simply seated there is one. */
export const seatStep = 'seat';

export const isSeatRecord = (written: unknown): written is SeatRecord =>
  hasFields(written, {
    as: (as) => as === 'seated' || as === 'superseded' || as === 'interrupted',
    message: isOptional(isString),
  });

export const seatForm: StepForm<SeatRecord> = { isWritten: isSeatRecord };

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

/** Names the steps whose ids are the nearest to one that there is not: at most ten, in their order, and of several that are as near the last. */
export const nearestSteps = (wanted: string, ids: readonly string[]): string => {
  const near = ids
    .map((id, index) => ({ id, index, shared: sharedStart(wanted, id) }))
    .sort((a, b) => b.shared - a.shared || b.index - a.index)
    .slice(0, mostNamed)
    .sort((a, b) => a.index - b.index)
    .map(({ id }) => id)
    .join(', ');
  const others = ids.length - mostNamed;
  return others > 0 ? `${near}, and ${others} more` : near;
};

const mostNamed = 10;

const sharedStart = (a: string, b: string): number => {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length += 1;
  return length;
};
