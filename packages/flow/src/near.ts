import { nearMatches } from '@millrace/core/adapter';

/** A sentence that says what was probably meant, or what there is: of very many, the first ones. */
export const didYouMean = (
  name: string,
  candidates: readonly string[],
  what: string,
  mostShown = 12,
): string => {
  const near = nearest(name, candidates);
  if (near !== undefined) return `Did you mean '${near}'?`;
  if (candidates.length === 0) return `There are no ${what}.`;
  const shown = candidates.slice(0, mostShown).join(', ');
  const more = candidates.length > mostShown ? ', …' : '';
  return `The ${what} are: ${shown}${more}.`;
};

/** What a name was probably meant to be, by its sense or by its letters. */
export const nearest = (name: string, candidates: readonly string[]): string | undefined => {
  if (candidates.includes(name)) return name;
  const same = synonyms.get(name.trim().toLowerCase());
  if (same !== undefined && candidates.includes(same)) return same;
  return nearMatches(name, candidates, 1)[0];
};

/** What others call the words of a document. */
const synonyms: ReadonlyMap<string, string> = new Map(
  Object.entries({
    contains: ['includes', 'include', 'has', '~'],
    'not contains': ['not includes', 'excludes', 'does not contain', 'does not include', '!~'],
    equals: ['=', '==', '===', 'eq', 'is'],
    'not equals': ['!=', '!==', '<>', '≠', 'ne', 'neq', 'is not', 'does not equal'],
    'starts with': ['begins with', 'prefix'],
    'ends with': ['suffix'],
    'is empty': ['blank', 'missing', 'not exists'],
    'is not empty': ['exists', 'present'],
    '>': ['gt', 'greater than', 'more than'],
    '<': ['lt', 'less than'],
    '>=': ['gte', 'ge', '=>', 'at least'],
    '<=': ['lte', 'le', '=<', 'at most'],
    and: ['&&', '&', 'all'],
    or: ['||', '|', 'any'],
    user: ['human'],
    assistant: ['ai', 'model', 'bot'],
    begin: ['start', 'input', 'entry'],
    agent: ['llm', 'generate'],
    retrieval: ['rag', 'search', 'knowledge'],
    switch: ['if', 'condition', 'branch', 'router'],
    categorize: ['classify', 'classifier', 'intent'],
    iterate: ['loop', 'foreach', 'for each', 'map'],
    message: ['msg', 'say', 'answer', 'reply', 'output', 'end'],
    code: ['function', 'script'],
  }).flatMap(([word, others]) => others.map((other) => [other, word])),
);
