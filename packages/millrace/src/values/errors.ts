import { defined } from './json.js';
import type { Usage } from './usage.js';

const retryableCodes: readonly string[] = ['rateLimited', 'timeout', 'connection', 'server'];

export const errorCodes = [
  'rateLimited',
  'timeout',
  'contextTooLong',
  'auth',
  'invalidRequest',
  'connection',
  'server',
  'invalidResponse',
  'emptyAnswer',
  'maxIterations',
  'busy',
  'guardRejected',
  'interceptor',
  'tool',
  'budget',
  'aborted',
  'config',
  'conflict',
  'invalidState',
  'invalidResume',
  'store',
  'memory',
  'queueFull',
  'tooLarge',
  'redirect',
  'refused',
  'unknown',
] as const;

/** The kind of an error. Branch on this; messages are for people and may change. */
export type MillraceErrorCode = (typeof errorCodes)[number];

/** Details of a `MillraceError` beside its code and message. */
export interface MillraceErrorOptions {
  /** The error of a library, tool or server that this one wraps. */
  readonly cause?: unknown;
  /** Whether a retry may succeed. Default: true for `rateLimited`, `timeout`, `connection` and `server`. */
  readonly retryable?: boolean | undefined;
  /** A message for end users, without internals or secrets. Default: a sentence for the code. */
  readonly userMessage?: string | undefined;
  /** The text received before a model's stream failed. */
  readonly partial?: string | undefined;
  /** The usage of a failed model request, as far as its provider reported it. */
  readonly usage?: Usage | undefined;
  /** How long the server asked to wait before the next request, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** The HTTP status, if there was a response. */
  readonly status?: number | undefined;
  /** The server's id of the request, for its support. */
  readonly requestId?: string | undefined;
  /** By how many tokens a request is too long, if known. */
  readonly over?: number | undefined;
}

/** The only error that a call emits. */
export class MillraceError extends Error {
  override readonly name = 'MillraceError';
  readonly code: MillraceErrorCode;
  readonly retryable: boolean;
  readonly userMessage: string;
  // Declared without a value: a printed error shows only the details it has.
  declare readonly partial?: string;
  declare readonly usage?: Usage;
  declare readonly retryAfterMs?: number;
  declare readonly status?: number;
  declare readonly requestId?: string;
  declare readonly over?: number;

  constructor(code: MillraceErrorCode, message: string, options: MillraceErrorOptions = {}) {
    const { cause, retryable, userMessage } = options;
    super(message, defined({ cause }));
    this.code = code;
    this.retryable = retryable ?? retryableCodes.includes(code);
    this.userMessage = userMessage ?? userMessageFor(code);
    Object.assign(this, detailsOf(options));
  }
}

const detailsOf = (options: MillraceErrorOptions): object => {
  const { partial, usage, retryAfterMs, status, requestId, over } = options;
  return defined({ partial, usage, retryAfterMs, status, requestId, over });
};

export const revised = (
  error: MillraceError,
  { message = error.message, ...more }: MillraceErrorOptions & { readonly message?: string },
): MillraceError => {
  const { code, cause, retryable, userMessage } = error;
  const known = { cause, retryable, userMessage, ...detailsOf(error) };
  return new MillraceError(code, message, { ...known, ...defined(more) });
};

/** Whether a value is a `MillraceError`, including one of another copy of this package. */
export const isMillraceError = (value: unknown): value is MillraceError => {
  try {
    return (
      value instanceof MillraceError ||
      (value instanceof Error && value.name === 'MillraceError' && 'code' in value)
    );
  } catch {
    // A proxy may throw at any question.
    return false;
  }
};

export const isConfigError = (error: unknown): error is MillraceError =>
  isMillraceError(error) && error.code === 'config';

/** The error for a misuse of the API, with the fix in its message. It is thrown synchronously. */
export const misuse = (message: string): MillraceError => new MillraceError('config', message);

/** Wraps a thrown value in a `MillraceError`; returns a `MillraceError` unchanged. */
export const toMillraceError = (
  cause: unknown,
  code: MillraceErrorCode = 'unknown',
  what = 'The call failed',
): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError(code, `${what}: ${messageOf(cause)}`, { cause });

/** The message of anything that was thrown: that of its errors if it has none, else its name or the value as a string. Never throws. */
export const messageOf = (thrown: unknown): string => {
  try {
    if (typeof thrown !== 'object' || thrown === null) return String(thrown);
    const field = (name: string): unknown => Reflect.get(thrown, name);
    const [message, name, errors] = [field('message'), field('name'), field('errors')];
    if (typeof message === 'string' && message !== '') return message;
    if (Array.isArray(errors) && errors.length > 0) {
      return errors.slice(0, 3).map(messageOf).join('; ');
    }
    if (typeof name === 'string' && name !== '') return name;
    const text = asText(thrown);
    return text === '[object Object]' ? 'an object without a message was thrown' : text;
  } catch {
    return 'a value that cannot be shown was thrown';
  }
};

const asText: (value: unknown) => string = String;

const userMessageFor = (code: MillraceErrorCode): string => {
  switch (code) {
    case 'busy':
      return 'The previous request is still in progress. Please wait until it is done.';
    case 'rateLimited':
    case 'queueFull':
      return 'There are too many requests right now. Please try again in a moment.';
    case 'timeout':
    case 'connection':
    case 'server':
      return 'The service did not respond as expected. Please try again.';
    case 'contextTooLong':
    case 'tooLarge':
      return 'That is too long to process. Please shorten it.';
    case 'guardRejected':
    case 'refused':
      return 'This request cannot be answered.';
    case 'aborted':
      return 'The request was cancelled.';
    case 'maxIterations':
      return 'The task needed more steps than are allowed.';
    case 'budget':
      return 'The usage limit is reached.';
    case 'conflict':
      return 'This is being processed elsewhere right now. Please try again.';
    case 'store':
    case 'memory':
      return 'The conversation could not be loaded or saved. Please try again later.';
    case 'invalidState':
    case 'invalidResume':
      return 'The earlier request cannot be resumed. Please start again.';
    default:
      return 'Something went wrong.';
  }
};

const fatals = new WeakSet<object>();

/** Marks an error that ends the call and its parents, even if it passes through a tool. */
export const fatal = (error: MillraceError): MillraceError => {
  fatals.add(error);
  return error;
};

export const isFatal = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && fatals.has(error);
