// Search by words and by meaning, and names that are similar to a misspelt one.
export { createMeaningIndex, fuseRankings } from './meaning-index.js';
export { endsOf, lookUpForm, nearMatches, termsIn, termsOfRequest, wordsIn } from './words.js';
