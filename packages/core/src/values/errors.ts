import type { Usage } from './usage.js';

const retryableCodes: readonly string[] = ['rateLimited', 'timeout', 'connection', 'server'];

/** All that can go wrong. */
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

/** What went wrong. Branch on this; messages are for people and change. */
export type MillraceErrorCode = (typeof errorCodes)[number];

/** What a `MillraceError` may carry beside its code and message. */
export interface MillraceErrorOptions {
  /** What was thrown beyond the seam. */
  readonly cause?: unknown;
  /** Whether the same request may succeed later. Default: by the code. */
  readonly retryable?: boolean;
  /** What an end user may read: no internals and no secrets. Default: a sentence for the code. */
  readonly userMessage?: string;
  /** The text that had arrived when a model's stream broke off. */
  readonly partial?: string;
  /** What a model's request had cost when it failed, as far as its provider has told. */
  readonly usage?: Usage;
  /** How long the other side asked to be left alone, in milliseconds. */
  readonly retryAfterMs?: number;
  /** The HTTP status, where there was a response. */
  readonly status?: number;
  /** What the other side calls the request: its support can find it by that. */
  readonly requestId?: string;
  /** How many tokens a request is too long by, where that is known. */
  readonly over?: number;
}

/** The only error that a call emits. */
export class MillraceError extends Error {
  override readonly name = 'MillraceError';
  readonly code: MillraceErrorCode;
  readonly retryable: boolean;
  readonly userMessage: string;
  // Only declared, so that one who prints the error sees those that it has.
  declare readonly partial?: string;
  declare readonly usage?: Usage;
  declare readonly retryAfterMs?: number;
  declare readonly status?: number;
  declare readonly requestId?: string;
  declare readonly over?: number;

  constructor(code: MillraceErrorCode, message: string, options: MillraceErrorOptions = {}) {
    const { cause, retryable, userMessage } = options;
    super(message, present({ cause }));
    this.code = code;
    this.retryable = retryable ?? retryableCodes.includes(code);
    this.userMessage = userMessage ?? userMessageFor(code);
    Object.assign(this, detailsOf(options));
  }
}

const present = (details: object): object =>
  Object.fromEntries(Object.entries(details).filter(([, value]) => value !== undefined));

const detailsOf = (options: MillraceErrorOptions): object => {
  const { partial, usage, retryAfterMs, status, requestId, over } = options;
  return present({ partial, usage, retryAfterMs, status, requestId, over });
};

export const revised = (
  error: MillraceError,
  { message = error.message, ...more }: MillraceErrorOptions & { readonly message?: string },
): MillraceError => {
  const { code, cause, retryable, userMessage } = error;
  const known = { cause, retryable, userMessage, ...detailsOf(error) };
  return new MillraceError(code, message, { ...known, ...present(more) });
};

/** Tells whether a value is a `MillraceError`, also one of another copy of this package. */
export const isMillraceError = (value: unknown): value is MillraceError =>
  value instanceof MillraceError ||
  (value instanceof Error && value.name === 'MillraceError' && 'code' in value);

/** The error for a misuse of the interface: thrown at once, with the fix in its message. */
export const misuse = (message: string): MillraceError => new MillraceError('config', message);

/** Makes a `MillraceError` of whatever was thrown; one that is it already stays as it is. */
export const toMillraceError = (
  cause: unknown,
  code: MillraceErrorCode = 'unknown',
  what = 'The call failed',
): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError(code, `${what}: ${messageOf(cause)}`, { cause });

export const messageOf = (thrown: unknown): string => {
  try {
    return thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
  } catch {
    return 'a value that cannot be shown was thrown';
  }
};

const userMessageFor = (code: MillraceErrorCode): string => {
  switch (code) {
    case 'busy':
      return 'The last request is still being worked on. Please wait until it is done.';
    case 'rateLimited':
    case 'queueFull':
      return 'There is too much going on just now. Please try again in a moment.';
    case 'timeout':
    case 'connection':
    case 'server':
      return 'The service did not answer as it should. Please try again.';
    case 'contextTooLong':
    case 'tooLarge':
      return 'That is too long to be worked on. Please shorten it.';
    case 'guardRejected':
    case 'refused':
      return 'This request cannot be answered.';
    case 'aborted':
      return 'The request was cancelled.';
    case 'maxIterations':
      return 'The task took more steps than are allowed.';
    case 'budget':
      return 'The limit of what may be used is reached.';
    case 'conflict':
      return 'This is being worked on elsewhere just now. Please try again.';
    case 'store':
    case 'memory':
      return 'What was said could not be read or kept. Please try again later.';
    case 'invalidState':
    case 'invalidResume':
      return 'What was begun earlier cannot be continued. Please begin anew.';
    default:
      return 'Something went wrong.';
  }
};

const fatals = new WeakSet<object>();

/** Marks an error that ends the call and those above it, whatever tool it passes through. */
export const fatal = (error: MillraceError): MillraceError => {
  fatals.add(error);
  return error;
};

export const isFatal = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && fatals.has(error);
