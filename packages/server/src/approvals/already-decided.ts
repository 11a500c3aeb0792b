import { MillraceError } from 'millrace';
import { isSameDecision } from 'millrace/journal';
import { isSameInput } from 'millrace/values';
import type { RecordedDecision } from '../chat/past.js';
import type { ReadVerdict } from './read-verdict.js';

/** The decision that is final. */
type Counting = Pick<ReadVerdict, 'approved' | 'input'>;

/** The error for a contradicting decision. It names the final one without its input, which not every client may see. */
const alreadyDecided = (counting: Counting | undefined): MillraceError => {
  const message = `This request has already been decided${counting === undefined ? '' : `: it was ${outcomeOf(counting)}`}.`;
  return new MillraceError('invalidResume', message, { userMessage: message, status: 409 });
};

const outcomeOf = ({ approved, input }: Counting): string => {
  if (!approved) return 'refused';
  return input === undefined ? 'approved' : 'approved with another input';
};

/** Throws if a verdict contradicts the final one. Each has an input only if it differs from the shown one. */
export const checkSame = (counting: ReadVerdict | undefined, verdict: ReadVerdict): void => {
  const { approved = false, input = null } = counting ?? {};
  const isSame = isSameDecision({ approved, input, shown: [null] }, verdict);
  if (counting === undefined || !isSame) throw alreadyDecided(counting);
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
  // A verdict does not apply to input that another question showed.
  const asked = [own?.shown.input ?? null];
  if (isSameDecision({ approved, input: toolCall.input, shown: asked }, verdict)) return;
  throw alreadyDecided(
    isSameInput(shown, toolCall) ? { approved } : { approved, input: toolCall.input },
  );
};
