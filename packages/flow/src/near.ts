import { nearMatches } from '@millrace/core/adapter';

/** A sentence that says what was probably meant, or what there is. */
export const didYouMean = (name: string, candidates: readonly string[], what: string): string => {
  const [near] = nearMatches(name, candidates, 1);
  if (near !== undefined) return `Did you mean '${near}'?`;
  if (candidates.length === 0) return `There are no ${what}.`;
  const shown = candidates.slice(0, mostShown).join(', ');
  const more = candidates.length > mostShown ? ', …' : '';
  return `The ${what} are: ${shown}${more}.`;
};

const mostShown = 12;
