import { nearMatches } from 'millrace/values';

/** A sentence with the nearest candidate, or else with the first candidates. */
export const didYouMean = (
  name: string,
  candidates: readonly string[],
  what: string,
  maxShown = 12,
): string => {
  const near = nearest(name, candidates);
  if (near !== undefined) return `Did you mean '${near}'?`;
  if (candidates.length === 0) return `There are no ${what}.`;
  const shown = candidates.slice(0, maxShown).join(', ');
  const more = candidates.length > maxShown ? ', …' : '';
  return `The ${what} are: ${shown}${more}.`;
};

export const nearest = (name: string, candidates: readonly string[]): string | undefined => {
  if (candidates.includes(name)) return name;
  const word = name.trim().toLowerCase();
  const same = synonyms.get(word.replace(/^at (?=least|most)/u, ''));
  if (same !== undefined && candidates.includes(same)) return same;
  return nearMatches(name, candidates, 1)[0];
};

/** Common synonyms of the words in a document. `at` is ignored in front of `least` and `most`. */
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
    '>=': ['gte', 'ge', '=>', 'least'],
    '<=': ['lte', 'le', '=<', 'most'],
    and: ['&&', '&', 'all'],
    or: ['||', '|', 'any'],
    user: ['human'],
    assistant: ['ai', 'model', 'bot'],
    begin: ['start', 'input', 'entry'],
    agent: ['llm', 'generate'],
    retrieval: ['rag', 'search', 'knowledge'],
    switch: ['if', 'condition', 'branch', 'router'],
    categorize: ['classify', 'classifier', 'intent'],
    iterate: ['foreach', 'for each', 'map'],
    loop: ['while', 'repeat', 'until'],
    human: ['person', 'approval', 'form', 'user input', 'input form'],
    http: ['invoke', 'request', 'fetch', 'webhook', 'rest'],
    set: ['assign', 'variable', 'assigner'],
    message: ['msg', 'say', 'answer', 'reply', 'output', 'end'],
    code: ['function', 'script'],
  }).flatMap(([word, others]) => others.map((other) => [other, word])),
);
