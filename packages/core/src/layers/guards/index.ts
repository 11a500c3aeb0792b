export { allowList, denyList, maxInputLength, normalizeText } from './lists.js';
export { guardAnswer } from './guard-answer.js';
export { guardInput, type GuardVerdict } from './guard-input.js';
export { guardResults } from './guard-results.js';
export { ratePerUser } from './rate-per-user.js';
export { redact } from '../interceptors/redact.js';
