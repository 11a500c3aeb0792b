import { isMillraceError } from '@millrace/core';
import { checkOptions, parsedJson, type Rule, wholeNumber } from '@millrace/core/adapter';
import { badRequest, fieldOf, refuseNoObject } from '../inbound.js';
import type { ApprovalDesk } from './approval-desk.js';
import { isDesk } from './is-desk.js';
import { readBody } from './read-body.js';
import { readVerdict } from './read-verdict.js';

/** What a handler takes. */
export interface ApprovalsHandlerOptions {
  /** How long a body may be, in bytes. Default: 65,536. */
  readonly maxBytes?: number;
}

/**
 * Makes a handler of `POST { token, approved, input?, reason? }` as JSON: it decides at the desk, and answers 204. Else it answers
 * `{ "error": "…" }` with 400 for what cannot be read, 401, 409 or 410 for a token that decides nothing, as `decide` says, 405 for another method,
 * 413 for a body that is too long, 415 for one that is no JSON and 422 for an input that the tool would not take. It never rejects. Whoever has the token may decide.
 */
export const approvalsHandler = (
  desk: Pick<ApprovalDesk, 'decide'>,
  options: ApprovalsHandlerOptions = {},
): ((request: Request) => Promise<Response>) => {
  checkOptions('approvalsHandler()', { desk }, { desk: isDesk }, ['desk']);
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

const rules: Readonly<Record<keyof ApprovalsHandlerOptions, Rule>> = { maxBytes: wholeNumber(1) };

const decided = async (
  desk: Pick<ApprovalDesk, 'decide'>,
  request: Request,
  maxBytes: number,
): Promise<Response> => {
  if (request.method !== 'POST') {
    return refusal(405, 'Only POST is allowed.', { allow: 'POST' });
  }
  // A form of another site cannot send this type.
  if (!/^application\/json *(;|$)/i.test(request.headers.get('content-type') ?? '')) {
    return refusal(415, 'The request must be of the type application/json.');
  }
  const text = await readBody(request, maxBytes).catch(() => '');
  if (text === undefined) return refusal(413, 'The request is too long.');
  const body = parsedJson(text);
  refuseNoObject(body);
  const token = fieldOf(body, 'token');
  if (typeof token !== 'string') throw badRequest("'token' must be a text");
  await desk.decide(token, readVerdict(body));
  return new Response(null, { status: 204 });
};

const refusal = (
  status: number,
  error: string,
  headers: Readonly<Record<string, string>> = {},
): Response => Response.json({ error }, { status, headers });
