import { estimateTokens } from '../estimate-tokens.js';
import { tokensOfAll } from '../fit-messages.js';
import type { ModelRequest } from '../model.js';

/** Estimates what a request may cost: all that it says, and the whole answer that it allows. */
export const requestTokens = (request: ModelRequest): number => {
  const { system = '', tools = [], outputSchema, messages, maxTokens = 0 } = request;
  const schemas = [...tools, ...(outputSchema === undefined ? [] : [outputSchema])];
  const declared = schemas.reduce((sum, it) => sum + estimateTokens(JSON.stringify(it)), 0);
  return estimateTokens(system) + declared + tokensOfAll(messages) + maxTokens;
};
