import { isMillraceError, MillraceError } from 'millrace';
import { defined, messageOf } from 'millrace/values';
import { defer, first, from, map, type Observable, type ObservableInput, of } from 'rxjs';

/** Returns or emits the id of the user of a request; `undefined` or `null` to refuse it. */
export type Authenticator = (request: Request) => UserId | ObservableInput<UserId>;

type UserId = string | null | undefined;

export const userOf$ = (
  request: Request,
  user: Authenticator | undefined,
): Observable<string | undefined> => {
  if (user === undefined) return of(undefined);
  return defer(() => {
    const found = user(request);
    return typeof found === 'string' || found === undefined || found === null
      ? of(found)
      : from(found);
  }).pipe(
    first(null, undefined),
    map((id) => {
      if (typeof id === 'string' && id !== '') return id.replaceAll(/\p{Surrogate}/gu, '\ufffd');
      throw refused(401, 'You are not logged in.');
    }),
  );
};

/** The prefix of the session ids of a user; empty without users. */
export const sessionsOf = (user: string | undefined): string =>
  user === undefined ? '' : `${encodeURIComponent(user)}/`;

/** Returns a function that does its work only once. */
export const once = <Given extends readonly unknown[]>(
  work: (...given: Given) => void,
): ((...given: Given) => void) => {
  let left: typeof work | undefined = work;
  return (...given) => {
    const now = left;
    left = undefined;
    now?.(...given);
  };
};

export const refused = (status: number, userMessage: string): MillraceError =>
  new MillraceError('invalidRequest', userMessage, { status, userMessage });

/** The error text for a request above the limit, in bytes. */
export const tooLarge = (maxBytes: number): string =>
  `The request is too large: up to ${sizeOf(maxBytes)} are accepted.`;

const sizeOf = (bytes: number): string => {
  const [size, unit] =
    bytes >= 1_000_000
      ? [bytes / 1e6, 'MB']
      : bytes >= 1_000
        ? [bytes / 1e3, 'kB']
        : [bytes, 'bytes'];
  return `${Number(size.toFixed(1))} ${unit}`;
};

export const notFound = (): MillraceError => refused(404, 'Not found.');

export const wrongMethod = (methods: readonly string[]): Response => {
  const error = `Only ${methods.join(' and ')} is allowed.`;
  const headers = { allow: methods.join(', ') };
  return Response.json({ error, code: 'invalidRequest' }, { status: 405, headers });
};

const unavailable = (message: string, userMessage: string): MillraceError =>
  new MillraceError('busy', message, { status: 503, userMessage });

export const tooMany = (maxCalls: number): MillraceError =>
  unavailable(
    `The limit of ${maxCalls} calls ('maxCalls') is reached.`,
    'The server is busy. Try again later.',
  );

export const closing = (): MillraceError =>
  unavailable('The chat server is closing.', 'The server is restarting. Try again.');

export const noSuchCall = (): MillraceError =>
  new MillraceError('invalidResume', 'The conversation has no such call.', {
    status: 404,
    userMessage: 'There is no such answer.',
  });

const statuses: Readonly<Partial<Record<string, number>>> = {
  invalidRequest: 400,
  invalidResume: 409,
  conflict: 409,
  busy: 503,
  queueFull: 429,
  refused: 421,
};

/** Creates the response for an error that a client may see. */
export type ToResponse = (error: MillraceError, status: number) => Response;

/** Ignores the status of errors from model providers and tools: it does not describe this server's response. */
export const failure = (
  cause: unknown,
  report: (error: MillraceError) => void,
  toResponse: ToResponse = asJson,
): Response => {
  const error = asError(cause);
  const known = statuses[error.code];
  const status = known === undefined ? 500 : (error.status ?? known);
  if (status >= 500 || status === 400 || error.code === 'refused') report(error);
  const response = toResponse(error, status);
  const { code, retryAfterMs } = error;
  if (code === 'busy' && retryAfterMs !== undefined) {
    response.headers.set('retry-after', String(Math.ceil(retryAfterMs / 1_000)));
  }
  return response;
};

/** The response for an error of a request: a page in words for a person whose browser opens it as a document, otherwise JSON. */
export const shownTo =
  ({ method, headers }: Request): ToResponse =>
  (error, status) =>
    ['GET', 'HEAD'].includes(method) && headers.get('sec-fetch-mode') === 'navigate'
      ? asPage(error, status)
      : asJson(error, status);

const asPage: ToResponse = ({ userMessage }, status) =>
  new Response(
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not available</title><body style="font:1rem/1.5 system-ui;margin:2rem"><p>${escaped(userMessage)}</p>`,
    {
      status,
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
        'x-content-type-options': 'nosniff',
      },
    },
  );

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"]/gu, (char) => `&#${String(char.codePointAt(0))};`);

const asJson: ToResponse = (error, status) =>
  Response.json(
    { error: error.userMessage, code: error.code, ...defined({ head: heads.get(error) }) },
    { status },
  );

/** The head of the conversation, for errors to clients that show an outdated one. */
const heads = new WeakMap<MillraceError, string | null>();

/** The error for a request that continues after an unknown message: a 409 with the head. */
export const conflictAt = (
  message: string,
  head: string | null,
  userMessage = 'The conversation has changed. Load it again.',
): MillraceError => {
  const error = new MillraceError('conflict', message, { status: 409, userMessage });
  heads.set(error, head);
  return error;
};

export const asError = (cause: unknown): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError('unknown', messageOf(cause), {
        cause,
      });
