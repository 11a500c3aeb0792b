import { isMillraceError, MillraceError } from '@millrace/core';
import { isRecord, parsedJson } from '@millrace/core/values';
import {
  OAuthClientFlowError,
  OAuthError,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import type { Server } from './server-options.js';
import { cleaned } from './text.js';

/** The failure of a server as a typed error, without values of its headers and variables. */
export const failureOf = (server: Server, doing: string, cause: unknown): MillraceError => {
  if (isMillraceError(cause)) return cause;
  const { code, why } = explained(cause);
  const text = withoutSecrets(server, cleaned(why, 500));
  return new MillraceError(code, `The MCP server '${server.name}' failed ${doing}: ${text}`);
};

/** Whether a failed request means that the connection is of no more use. */
export const isConnectionLost = (cause: unknown): boolean =>
  !(cause instanceof SdkHttpError) &&
  (isTypeError(cause) || codeOf(cause) === SdkErrorCode.ConnectionClosed);

/** The server does not know the session any more. */
export class SessionLost extends MillraceError {
  /** Whether the server has refused the request for that reason, so that nothing ran. */
  readonly isUntouched: boolean;

  constructor(message: string, isUntouched: boolean) {
    super('connection', message);
    this.isUntouched = isUntouched;
  }
}

/**
 * Returns whether a failed request means that the session is lost. Servers answer with 404, as the specification asks, with
 * 400 and words about the session, or with a plain 400, which may have another reason: then nothing is repeated.
 */
export const sessionLostBy = (
  server: Server,
  doing: string,
  cause: unknown,
  hasSession: boolean,
): SessionLost | undefined => {
  const lost = (isUntouched: boolean): SessionLost =>
    new SessionLost(failureOf(server, doing, cause).message, isUntouched);
  if (cause instanceof ProtocolError) {
    return cause.code === -32_001 && /\bsession\b/i.test(cause.message) && hasSession
      ? lost(false)
      : undefined;
  }
  if (!(cause instanceof SdkHttpError)) return undefined;
  const answer = answerIn(cause);
  if (cause.status === 404) return answer?.code === -32_601 ? undefined : lost(true);
  if (cause.status !== 400) return undefined;
  if (/session/i.test(textIn(cause))) return lost(true);
  return hasSession && answer?.isMatched !== true ? lost(false) : undefined;
};

const textIn = ({ data: { text } }: SdkHttpError): string =>
  typeof text === 'string' ? text.slice(0, 10_000) : '';

/** The error of the protocol in the body of an HTTP error. It is matched if it answers the request. */
const answerIn = (
  cause: SdkHttpError,
):
  | { readonly code: unknown; readonly message: unknown; readonly isMatched: boolean }
  | undefined => {
  const body = parsedJson(textIn(cause));
  const error = isRecord(body) ? body['error'] : undefined;
  if (!isRecord(body) || !isRecord(error)) return undefined;
  const { code, message } = error;
  return { code, message, isMatched: body['id'] !== undefined && body['id'] !== null };
};

interface Explained {
  readonly code: MillraceError['code'];
  readonly why: string;
}

const explained = (cause: unknown): Explained => {
  if (cause instanceof UnauthorizedError) {
    return { code: 'auth', why: "it requires authorization. Check 'headers' or 'authProvider'." };
  }
  if (cause instanceof OAuthError || cause instanceof OAuthClientFlowError) {
    return { code: 'auth', why: cause.message };
  }
  if (cause instanceof SdkHttpError) {
    const { code, why } = ofStatus(cause.status);
    const message = answerIn(cause)?.message;
    return { code, why: typeof message === 'string' ? `${why} ${message}` : why };
  }
  if (cause instanceof ProtocolError) return { code: 'server', why: cause.message };
  if (cause instanceof SdkError) {
    return cause.cause === undefined ? ofSdk(cause) : explained(cause.cause);
  }
  const errno = codeOf(cause) ?? codeOf(isRecord(cause) ? cause['cause'] : undefined);
  if (errno === 'ENOENT' || errno === 'EACCES') {
    return {
      code: 'config',
      why: `its command cannot be started (${errno}). Check 'command', 'cwd' and that it is installed.`,
    };
  }
  if (errno !== undefined || isTypeError(cause)) {
    return { code: 'connection', why: `it cannot be reached (${errno ?? 'no connection'}).` };
  }
  return {
    code: 'invalidResponse',
    why:
      isRecord(cause) && typeof cause['message'] === 'string'
        ? cause['message']
        : 'its response is not valid.',
  };
};

const ofStatus = (status: number): Explained => {
  if (status === 401 || status === 403) {
    return { code: 'auth', why: `HTTP ${status}. Check 'headers' or 'authProvider'.` };
  }
  if (status === 429) return { code: 'rateLimited', why: 'HTTP 429.' };
  if (status >= 500 || status === 404) return { code: 'server', why: `HTTP ${status}.` };
  return { code: 'invalidRequest', why: `HTTP ${status}.` };
};

const ofSdk = ({ code, message }: SdkError): Explained => {
  switch (code) {
    case SdkErrorCode.RequestTimeout:
      return { code: 'timeout', why: 'it did not answer in time.' };
    case SdkErrorCode.ConnectionClosed:
    case SdkErrorCode.NotConnected:
    case SdkErrorCode.SendFailed:
      return { code: 'connection', why: 'it closed the connection.' };
    default:
      return { code: 'invalidResponse', why: message };
  }
};

/** Errors of `fetch` and of child processes may come from another realm. */
const codeOf = (cause: unknown): string | undefined =>
  isRecord(cause) && typeof cause['code'] === 'string' ? cause['code'] : undefined;

const isTypeError = (cause: unknown): boolean => isRecord(cause) && cause['name'] === 'TypeError';

const withoutSecrets = ({ stdio, http }: Server, text: string): string =>
  [...Object.values(stdio?.env ?? {}), ...Object.values(http?.headers ?? {})]
    .flatMap((value) => [value, value.replace(/^\w+ /, '')])
    .filter((secret) => secret.length >= 4)
    .reduce((clean, secret) => clean.replaceAll(secret, '[removed]'), text);
