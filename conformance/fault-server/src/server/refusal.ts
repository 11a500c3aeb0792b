import { checkChatRequest } from '../check/check-chat-request.js';
import { checkMessagesRequest } from '../check/check-messages-request.js';
import { checkResponsesRequest } from '../check/check-responses-request.js';
import type { CheckRequest } from '../check/check-request.js';
import type { ResponseScript, Scenario, SeenRequest, Wire } from '../scenario.js';
import { json } from '../steps.js';
import { hasHalfCharacter } from './has-half-character.js';
import { vendorError, type VendorErrorDetails } from '../vendor-error.js';

/** Why a vendor does not even begin to answer, and what it says instead. */
export interface Refusal {
  readonly violations: readonly string[];
  readonly script: ResponseScript;
}

type Asked = Pick<SeenRequest, 'method' | 'path' | 'headers' | 'body'>;

const checks: Readonly<Record<Wire, CheckRequest>> = {
  chat: checkChatRequest,
  responses: checkResponsesRequest,
  messages: checkMessagesRequest,
};

const paths: readonly (readonly [RegExp, Wire])[] = [
  [/^(\/v1)?\/chat\/completions(\?|$)/, 'chat'],
  [/^(\/v1)?\/responses(\?|$)/, 'responses'],
  [/^\/v1\/messages(\?|$)/, 'messages'],
];

/** Checks a request as the vendor does: address, key, and then what it says. Nothing, where all is well. */
export const refusalOf = (
  asked: Asked,
  { auth, allow }: Pick<Scenario, 'auth' | 'allow'>,
): Refusal | undefined => {
  const { method, path, headers, body } = asked;
  const wire = method === 'POST' ? wireOf(path) : undefined;
  if (wire === undefined) {
    const speaker = 'anthropic-version' in headers ? 'messages' : 'chat';
    return refusal(speaker, 404, { message: `Invalid URL (${method} ${path})` });
  }
  if (auth !== 'none' && keyOf(headers) === '') {
    return refusal(wire, 401, { message: 'You did not provide an API key.' });
  }
  if (hasHalfCharacter(body)) {
    return refusal(wire, 400, {
      message: 'The request body is not valid JSON: no low surrogate in string.',
    });
  }
  const violations = checks[wire](headers, body, allow === undefined ? {} : { allow });
  const [message] = violations;
  return message === undefined ? undefined : { ...refusal(wire, 400, { message }), violations };
};

/** The key that a request carries; empty where there is none. */
export const keyOf = (headers: SeenRequest['headers']): string => {
  const [, bearer = ''] = /^Bearer\s+(\S+)$/.exec(headers['authorization'] ?? '') ?? [];
  return bearer || (headers['x-api-key'] ?? headers['api-key'] ?? '').trim();
};

const wireOf = (path: string): Wire | undefined =>
  paths.find(([pattern]) => pattern.test(path))?.[1];

const refusal = (wire: Wire, status: number, details: VendorErrorDetails): Refusal => ({
  violations: [`${status}: ${details.message ?? ''}`],
  script: json(status, vendorError(wire, status, details)),
});
