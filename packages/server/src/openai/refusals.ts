import { MillraceError } from 'millrace';
import { fieldOf } from '../inbound.js';

/** A refusal that names the parameter that is to blame. */
export const refuse = (
  message: string,
  param: string | null = null,
  code: string | null = null,
  status = 400,
): MillraceError =>
  new MillraceError('invalidRequest', message, {
    status,
    userMessage: message,
    cause: { param, code },
  });

/** Refuses deeply nested values, which would overflow the stack when they are copied or encoded as JSON. */
export const assertShallow = (value: unknown, param: string | null = null): void => {
  if (isDeeper(value, maxDepth)) throw refuse('The request is nested too deeply.', param);
};

const maxDepth = 200;

const isDeeper = (value: unknown, than: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (than === 0 || Object.values(value).some((item) => isDeeper(item, than - 1)));

/** An error as clients of OpenAI expect it. */
export interface WireError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

export const wireError = (
  { code, cause }: MillraceError,
  message: string,
  status: number,
): WireError => {
  // Causes of other errors may contain secrets.
  const isOwn = code === 'invalidRequest' && fieldOf(cause, 'param') !== undefined;
  const own = isOwn ? cause : undefined;
  return {
    message,
    type: types[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error'),
    param: textOr(fieldOf(own, 'param')),
    code: textOr(fieldOf(own, 'code')) ?? code,
  };
};

const types: Readonly<Partial<Record<number, string>>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
};

const textOr = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Prevents the OpenAI SDK from retrying a failed request: its call may have run tools. */
const once = { 'x-should-retry': 'false' };

/** The response for a request that was refused before a call began. */
export const refusal = (error: MillraceError, status: number): Response =>
  Response.json(
    { error: wireError(error, error.userMessage, status) },
    { status, headers: status === 503 || status === 429 ? {} : once },
  );

/** The response for a call that has failed. */
export const callFailure = (error: MillraceError, message: string): Response => {
  const status = statuses[error.code] ?? 500;
  return Response.json({ error: wireError(error, message, status) }, { status, headers: once });
};

const statuses: Readonly<Partial<Record<MillraceError['code'], number>>> = {
  contextTooLong: 400,
  tooLarge: 400,
  guardRejected: 400,
  invalidResume: 400,
  invalidRequest: 400,
  rateLimited: 429,
  budget: 429,
  queueFull: 429,
  timeout: 504,
};
