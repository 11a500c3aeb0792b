import { isMillraceError, MillraceError } from '@millrace/core';
import { isSameDecision } from '@millrace/core/journal';
import { isSameInput } from '@millrace/core/values';
import type { RecordedDecision } from '../chat/past.js';
import type { ReadVerdict } from './read-verdict.js';

/** The decision that counts. */
type Counting = Pick<ReadVerdict, 'approved' | 'input'>;

/** The error for another decision. It names the one that counts, without its input: not all may see that. */
export const alreadyDecided = (counting: Counting | undefined): MillraceError => {
  const message = `This request has already been decided${counting === undefined ? '' : `: it was ${outcomeOf(counting)}`}.`;
  const options = { userMessage: message, status: 409 };
  const error = new MillraceError('invalidResume', message, options);
  countingOf.set(error, counting);
  return error;
};

const countingOf = new WeakMap<MillraceError, Counting | undefined>();

const outcomeOf = ({ approved, input }: Counting): string => {
  if (!approved) return 'refused';
  return input === undefined ? 'approved' : 'approved with another input';
};

/** Whether an error of the queue says that the request has another decision; `undefined` for other errors. */
export const contradicts = (error: unknown, verdict: ReadVerdict): boolean | undefined => {
  if (!isMillraceError(error) || !countingOf.has(error)) return undefined;
  const counting = countingOf.get(error);
  if (counting === undefined) return true;
  const { approved, input = null } = counting;
  return !isSameDecision({ approved, input, shown: [null] }, verdict);
};

/** Throws if a verdict contradicts the decision on its question, or, if that was never decided, the last one on its tool call. */
export const checkAgainst = (
  decisions: ReadonlyMap<number, RecordedDecision>,
  question: number,
  verdict: ReadVerdict,
): void => {
  const own = decisions.get(question);
  const counting = own ?? Array.from(decisions.values()).at(-1);
  if (counting === undefined) return;
  const { approved, toolCall, shown } = counting;
  // What another question has shown is not what this verdict approves.
  const asked = [own?.shown.input ?? null];
  if (isSameDecision({ approved, input: toolCall.input, shown: asked }, verdict)) return;
  throw alreadyDecided(
    isSameInput(shown, toolCall) ? { approved } : { approved, input: toolCall.input },
  );
};
