import { countRequest } from '../fitting/count-request.js';
import { plainCounter } from '../fitting/token-counter.js';
import type { ModelRequest } from '../model.js';

/** Estimates what a request may cost: all that it says, and the whole answer that it allows. */
export const requestTokens = (request: ModelRequest): number =>
  countRequest(plainCounter, request) + (request.maxTokens ?? 0);
