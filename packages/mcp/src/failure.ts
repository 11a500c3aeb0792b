import { isMillraceError, MillraceError } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
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
import { cleaned, safeName } from './text.js';

/** The failure of a server as a typed error, without values of its headers and variables. */
export const failureOf = (server: Server, doing: string, cause: unknown): MillraceError => {
  if (isMillraceError(cause)) return cause;
  const { code, why, status } = explained(cause);
  return new MillraceError(
    code,
    `The MCP server '${server.name}' failed ${doing}: ${shownTo(server, why)}`,
    status === undefined ? {} : { status },
  );
};

/** The text of a server about a failure, without the secrets of the options. */
export const shownTo = (server: Server, text: string, maxLength = 500): string =>
  // Redact before cutting: a part of a secret would not be found.
  cleaned(withoutSecrets(server, cleaned(text, mostRead)), maxLength);

/** The name of a tool for a warning. */
export const nameShownTo = (server: Server, name: string): string =>
  safeName('', withoutSecrets(server, name));

const mostRead = 20_000;

/**
 * Whether a failed request means that the connection is lost. Over HTTP, each request has its own connection: if it
 * breaks, only that request fails, unless nothing listens at the address anymore.
 */
export const isConnectionLost = (cause: unknown, isHttp: boolean): boolean =>
  !(cause instanceof SdkHttpError) &&
  (codeOf(cause) === SdkErrorCode.ConnectionClosed ||
    (isHttp ? errnoOf(cause) === 'ECONNREFUSED' : isTypeError(cause)));

/** The server no longer knows the session. */
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
 * 410, with another status and words about the session, or with a plain 400, which may have another reason: then nothing is
 * repeated.
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
    return hasSession && sessionCodes.includes(cause.code) && namesLostSession(cause.message)
      ? lost(false)
      : undefined;
  }
  if (!(cause instanceof SdkHttpError)) return undefined;
  const { status } = cause;
  const answer = answerIn(cause);
  if (status === 404) return answer?.code === -32_601 ? undefined : lost(true);
  if (status === 400 && /session/i.test(textIn(cause))) return lost(true);
  if (!hasSession) return undefined;
  if (status === 400 && answer?.isMatched !== true) return lost(namesLostSession(textIn(cause)));
  if (status === 410) return lost(true);
  // A server may have run something before it failed.
  return status >= 400 && namesLostSession(textIn(cause)) ? lost(status < 500) : undefined;
};

/** Codes that servers use for lost sessions. Other codes are about a single request. */
const sessionCodes: readonly number[] = [-32_600, -32_002, -32_001, -32_000];

const gone =
  'not found|unknown|invalid|not valid|expired|terminated|closed|ended|gone|missing|does not exist|not exist|no longer';
const lostSession = new RegExp(
  `\\bsession\\b[^.]{0,80}\\b(${gone})\\b|\\b(no|${gone})\\b[^.]{0,40}\\bsession\\b|\\bnot (yet )?initiali[sz]ed\\b|\\bexpect(ed|s|ing)? initiali[sz]e`,
  'i',
);

const namesLostSession = (text: string): boolean => lostSession.test(text.slice(0, 2_000));

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
  readonly status?: number;
}

const explained = (cause: unknown): Explained => {
  if (cause instanceof UnauthorizedError) {
    return { code: 'auth', why: "it requires authorization. Check 'headers' or 'authProvider'." };
  }
  if (cause instanceof OAuthError || cause instanceof OAuthClientFlowError) {
    return { code: 'auth', why: cause.message };
  }
  if (cause instanceof SdkHttpError) {
    const { status } = cause;
    const { code, why } = ofStatus(status);
    const message = answerIn(cause)?.message;
    return { code, why: typeof message === 'string' ? `${why} ${message}` : why, status };
  }
  if (cause instanceof ProtocolError) return { code: 'server', why: cause.message };
  if (cause instanceof SdkError) {
    return cause.cause === undefined ? ofSdk(cause) : explained(cause.cause);
  }
  const errno = errnoOf(cause);
  if (errno === 'ENOENT' || errno === 'EACCES') {
    return {
      code: 'config',
      why: `its command cannot be started (${errno}). Check 'command', 'cwd' and that it is installed.`,
    };
  }
  if (errno !== undefined || isTypeError(cause)) {
    return { code: 'connection', why: `it cannot be reached (${errno ?? 'no connection'}).` };
  }
  const message = isRecord(cause) ? cause['message'] : undefined;
  return {
    code: 'invalidResponse',
    why: withoutIssues(typeof message === 'string' ? message : ''),
  };
};

/** Removes the list of schema issues, which can be a page of JSON. */
const withoutIssues = (message: string): string =>
  message.replace(/:?\s*\[\n[^]*$/, '.').replace(/^\.?$/, 'its response is not valid.');

const ofStatus = (status: number): Explained => {
  if (status === 401 || status === 403) {
    return { code: 'auth', why: `HTTP ${status}. Check 'headers' or 'authProvider'.` };
  }
  if (status === 429) return { code: 'rateLimited', why: 'HTTP 429.' };
  if (status >= 300 && status < 400) {
    return {
      code: 'invalidRequest',
      why: `HTTP ${status}, a redirect that is not followed. Set 'url' to its destination.`,
    };
  }
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
      return { code: 'invalidResponse', why: withoutIssues(message) };
  }
};

/** Errors of `fetch` and of child processes may come from another realm. */
const codeOf = (cause: unknown): string | undefined =>
  isRecord(cause) && typeof cause['code'] === 'string' ? cause['code'] : undefined;

const errnoOf = (cause: unknown): string | undefined =>
  codeOf(cause) ?? codeOf(isRecord(cause) ? cause['cause'] : undefined);

const isTypeError = (cause: unknown): boolean => isRecord(cause) && cause['name'] === 'TypeError';

// ---------------------------------------------------------------- secrets

const withoutSecrets = (server: Server, text: string): string =>
  secretsOf(server).reduce((clean, secret) => clean.replaceAll(secret, '[removed]'), text);

/** The secrets to redact, the longest first: one may be a part of another. */
const secretsOf = ({ stdio, http }: Server): readonly string[] =>
  [
    ...[...Object.values(stdio?.env ?? {}), ...Object.values(http?.headers ?? {})]
      .flatMap((value) => [value, value.replace(/^\w+ /, '')])
      .filter((value) => value.length >= 4),
    ...secretArguments(stdio?.args ?? []),
    ...(http === undefined ? [] : secretParts(String(http.url))),
  ]
    // In tool names, special characters of a secret are replaced.
    .flatMap((value) => [value, value.replace(/[^\w-]/g, '_')])
    .toSorted((a, b) => b.length - a.length);

const secretName = /key|token|secret|passw|auth|credential/i;

/** Values after an argument such as `--api-key`, or after its `=`, and passwords in URLs. */
const secretArguments = (args: readonly string[]): readonly string[] =>
  args
    .flatMap((arg, index) => {
      const [name = '', ...rest] = arg.split('=');
      const before = args[index - 1] ?? '';
      return [
        ...(secretName.test(name) && rest.length > 0 ? [rest.join('=')] : []),
        ...(before.startsWith('-') && !before.includes('=') && secretName.test(before)
          ? [arg]
          : []),
        ...(URL.canParse(arg) ? secretParts(arg) : []),
      ];
    })
    .filter((value) => value.length >= 4);

/** Values of the query, the password and long parts of the path, both encoded and decoded. */
const secretParts = (address: string): readonly string[] => {
  const { searchParams, search, pathname, password } = new URL(address);
  const written = search.slice(1).split(/[&=]/);
  const parts = pathname.split('/').filter((part) => part.length >= longPart);
  return [...searchParams.values(), ...written, password, ...parts].filter(
    (value) => value.length >= shortValue,
  );
};

const [shortValue, longPart] = [8, 20];
