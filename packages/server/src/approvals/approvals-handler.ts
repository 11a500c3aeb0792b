import { isMillraceError } from 'millrace';
import { checkOptions, having, parsedJson, type Rule, wholeNumber } from 'millrace/values';
import { badRequest, fieldOf, isJson, readBody, requireObject } from '../inbound.js';
import type { ApprovalDesk } from './pending-requests.js';
import { readVerdict } from './read-verdict.js';

/** Options of `approvalsHandler`. */
export interface ApprovalsHandlerOptions {
  /** Maximum size of a request body, in bytes. Default: 65,536. */
  readonly maxBytes?: number | undefined;
}

/**
 * Creates a handler for `POST { token, approved, input?, reason? }` as JSON. It decides on the request and answers 204,
 * or answers `{ "error": "…" }` with 400 for a malformed body, 401, 409 or 410 for a token that cannot decide (see
 * `decide`), 403 for an edit that is not allowed, 405 for another method, 413 for a body over `maxBytes`, 415 for another content type, and 422 for an input
 * that the tool rejects. Never rejects. The token is the only authorization.
 */
export const approvalsHandler = (
  desk: Pick<ApprovalDesk, 'decide'>,
  options: ApprovalsHandlerOptions = {},
): ((request: Request) => Promise<Response>) => {
  checkOptions('approvalsHandler()', { desk }, { desk: isApprovalQueue }, ['desk']);
  checkOptions('approvalsHandler()', options, rules);
  const { maxBytes = 65_536 } = options;
  return async (request) => {
    try {
      return await decided(desk, request, maxBytes);
    } catch (error) {
      return isMillraceError(error) && error.status !== undefined
        ? refusal(error.status, error.userMessage)
        : refusal(500, 'Something went wrong.');
    }
  };
};

const isApprovalQueue: Rule = having('decide', 'an approvalQueue()');

const rules: Readonly<Record<keyof ApprovalsHandlerOptions, Rule>> = { maxBytes: wholeNumber(1) };

const decided = async (
  desk: Pick<ApprovalDesk, 'decide'>,
  request: Request,
  maxBytes: number,
): Promise<Response> => {
  if (request.method !== 'POST') {
    return refusal(405, 'Only POST is allowed.', { allow: 'POST' });
  }
  if (!isJson(request)) {
    return refusal(415, 'The content type must be application/json.');
  }
  const text = await readBody(request, maxBytes).catch(() => '');
  if (text === undefined) return refusal(413, 'The request body is too large.');
  const body = parsedJson(text);
  requireObject(body);
  const token = fieldOf(body, 'token');
  if (typeof token !== 'string') throw badRequest("'token' must be a string");
  await desk.decide(token, readVerdict(body));
  return new Response(null, { status: 204 });
};

const refusal = (
  status: number,
  error: string,
  headers: Readonly<Record<string, string>> = {},
): Response => Response.json({ error }, { status, headers });
