import type { PlanContext } from './plan-context.js';
import { valueOf } from './read-result.js';
import { outcomeOf, type Step } from './step.js';
import { tokensOf } from './words.js';

/** What `it` and `the result` stand for: a value, one that is still open, one that could not be got, or nothing. */
export type Reference =
  | { readonly status: 'known'; readonly value: string }
  | { readonly status: 'open' | 'failed' | 'none' };

/** Tells whether a text has a word that may stand for an earlier result. */
export const refersBack = (text: string): boolean =>
  tokensOf(text.replace(/\b(?:time|day|date|late) is it\b/giu, '')).some(({ text: word }) =>
    /^(?:it|its|that|this|there|them|their|result)$/iu.test(word),
  );

/** Finds what a reference stands for: the result of the step before, else what the turn before ended with. */
export const referenceFor = (
  before: readonly Step[],
  { answers, earlierValue }: Pick<PlanContext, 'answers' | 'earlierValue'>,
): Reference => {
  const last = before.findLast(
    ({ status }) => !['condition', 'unfit', 'refused', 'remark'].includes(status),
  );
  switch (last?.status) {
    case undefined:
      return known(earlierValue, 'none');
    case 'given':
      return known(last.value, 'none');
    case 'waiting':
      return { status: 'open' };
    case 'call': {
      const outcome = outcomeOf(last, answers);
      if (outcome.status === 'open') return { status: 'open' };
      return known(
        outcome.status === 'done' ? valueOf(outcome.observation.text) : undefined,
        'failed',
      );
    }
    default:
      return { status: 'failed' };
  }
};

const known = (value: string | undefined, otherwise: 'none' | 'failed'): Reference =>
  value === undefined ? { status: otherwise } : { status: 'known', value };
