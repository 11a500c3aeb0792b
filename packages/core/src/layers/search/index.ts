// Search by words and by meaning, and names that are similar to a misspelt one.
export { createMeaningIndex, fuseRankings } from './meaning-index.js';
export { nearMatches } from './near-matches.js';
export { endsOf, lookUpForm, termsIn, termsOfRequest, wordsIn } from './words.js';
