import { isMillraceError, MillraceError } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import {
  failure,
  failureOf,
  type Fault,
  faultOf,
  type HeadersLike,
  type JsonRecord,
} from '@millrace/wire';

/** The context of an error that is mapped. */
interface ErrorSource {
  /** The name of the provider. */
  readonly vendor: string;
  /** Redacts a string. */
  readonly clean: (text: string) => string;
  readonly now: number;
}

/**
 * Maps what a provider rejected with, or sent as an error part, to a `MillraceError`: an `APICallError` by its status, headers and
 * body, a plain value by its code and message, and anything else by its name or the system code in its causes. It matches by shape:
 * each provider may have a copy of the error classes of its own.
 */
export const toProviderError = (thrown: unknown, source: ErrorSource): MillraceError => {
  if (isMillraceError(thrown)) return thrown;
  const { vendor, clean } = source;
  if (typeof thrown === 'string') return failure(vendor, faultOf({ error: thrown }) ?? {});
  if (!isRecord(thrown)) return failureOf(vendor, thrown, { clean });
  if (nameOf(thrown) === 'AI_APICallError') return ofApiCall(thrown, source);
  const known = named.get(nameOf(thrown));
  if (known !== undefined) return ofNamed(thrown, known, source);
  if (thrown instanceof Error || typeof thrown['name'] === 'string') {
    return ofCredentials(thrown, source) ?? failureOf(vendor, thrown, { clean });
  }
  return failure(vendor, faultOf({ error: thrown }) ?? faultOf(thrown) ?? {});
};

const nameOf = ({ name }: JsonRecord): string => (typeof name === 'string' ? name : '');

const ofApiCall = (error: JsonRecord, source: ErrorSource): MillraceError => {
  const { vendor, clean, now } = source;
  const { statusCode, responseHeaders, url } = error;
  // Without a status, there was no response: the cause says why.
  if (typeof statusCode !== 'number') return failureOf(vendor, error, { clean });
  if (statusCode >= 200 && statusCode < 300) return ofBrokenAnswer(error, source);
  const body = bodyOf(error);
  const fault = faultOf(body);
  const inner = isRecord(body) ? named.get(nameOf(body)) : undefined;
  if (isRecord(body) && inner !== undefined) {
    return ofNamed({ ...body, message: error['message'] }, inner, source);
  }
  return failure(vendor, {
    ...fault,
    message: clean(messageOf(error, fault) ?? ''),
    ...(isOfStream(error, fault) ? {} : { status: statusCode }),
    headers: headersOf(responseHeaders),
    ...(typeof url === 'string' && URL.canParse(url) ? { url: clean(url) } : {}),
    now,
  });
};

/** A body in a form that the package does not know has the vendor's message; the package says only the text of the status. */
const messageOf = ({ data, message }: JsonRecord, fault: Fault | undefined): string | undefined => {
  const own = typeof message === 'string' ? message : undefined;
  return data === undefined ? (fault?.message ?? own) : own;
};

/**
 * Whether an error was the first event of a stream. Then the package made up its status, and its body is the error alone; the type
 * of the error says more.
 */
const isOfStream = ({ data, responseHeaders }: JsonRecord, fault: Fault | undefined): boolean =>
  data === undefined &&
  fault?.type !== undefined &&
  headerIn(responseHeaders, 'content-type').startsWith('text/event-stream');

/** The headers of a response, as providers report them: a record whose names may have any case. */
const headersOf = (headers: unknown): HeadersLike => {
  const entries = isRecord(headers) ? Object.entries(headers) : [];
  const byName = new Map(entries.map(([name, value]) => [name.toLowerCase(), value]));
  return {
    get: (name) => {
      const value = byName.get(name);
      return typeof value === 'string' ? value : null;
    },
  };
};

export const headerIn = (headers: unknown, name: string): string =>
  headersOf(headers).get(name) ?? '';

/** The body that the provider parsed, or the text of the response. */
const bodyOf = ({ data, responseBody }: JsonRecord): unknown => {
  if (isRecord(data)) return data;
  if (typeof responseBody !== 'string') return undefined;
  try {
    return parsedJson(responseBody);
  } catch {
    return undefined;
  }
};

interface NamedError {
  readonly code: 'config' | 'invalidRequest' | 'invalidResponse';
  readonly did: string;
  readonly retryable?: boolean;
}

const unreadableAnswer: NamedError = {
  code: 'invalidResponse',
  did: 'sent an answer that its AI SDK package cannot read',
};
const unacceptable: NamedError = { code: 'invalidRequest', did: 'cannot take this request' };
const unset: NamedError = { code: 'config', did: 'is not set up' };

/** The errors of `@ai-sdk/provider` beside `APICallError`, by their names. */
const named: ReadonlyMap<string, NamedError> = new Map([
  ['AI_LoadAPIKeyError', unset],
  ['AI_LoadSettingError', unset],
  ['AI_NoSuchModelError', unset],
  ['AI_NoSuchProviderReferenceError', unacceptable],
  ['AI_InvalidArgumentError', unacceptable],
  ['AI_InvalidPromptError', unacceptable],
  ['AI_UnsupportedFunctionalityError', unacceptable],
  ['AI_EmptyResponseBodyError', { ...unreadableAnswer, retryable: true }],
  ['AI_InvalidResponseDataError', unreadableAnswer],
  ['AI_JSONParseError', unreadableAnswer],
  ['AI_NoContentGeneratedError', unreadableAnswer],
  ['AI_TypeValidationError', { ...unreadableAnswer, retryable: true }],
]);

/** An error event that a provider package does not know fails its validation: then the vendor's own error is in its value. */
const ofNamed = (error: JsonRecord, known: NamedError, source: ErrorSource): MillraceError => {
  const fault = faultOf(error['value']);
  return fault === undefined ? ofPackage(error, known, source) : failure(source.vendor, fault);
};

const ofPackage = (
  error: JsonRecord,
  { code, did, retryable }: NamedError,
  { vendor, clean }: ErrorSource,
): MillraceError =>
  new MillraceError(code, `${vendor} ${did}: ${shortened(clean(textOf(error)))}`, {
    cause: error,
    retryable,
  });

/** A response that could not be read: its connection was lost, or its content is not that of the vendor. */
const ofBrokenAnswer = (error: JsonRecord, source: ErrorSource): MillraceError => {
  const lost = failureOf(source.vendor, error, source);
  if (lost.code !== 'unknown') return lost;
  const cause = isRecord(error['cause']) ? error['cause'] : {};
  return ofNamed(error, named.get(nameOf(cause)) ?? unreadableAnswer, source);
};

/** Google's library for credentials, which the package of Vertex asks before each request, has no codes. */
const ofCredentials = (error: JsonRecord, source: ErrorSource): MillraceError | undefined => {
  const message = textOf(error);
  if (message.startsWith('Could not load the default credentials')) {
    return ofPackage(error, unset, source);
  }
  return /^Error code (invalid_|unauthorized_client|access_denied)/.test(message)
    ? failure(source.vendor, { type: 'authentication_error', message: source.clean(message) })
    : undefined;
};

const textOf = ({ message, name }: JsonRecord): string =>
  typeof message === 'string' && message !== '' ? message : String(name);

/** The message of a validation quotes the whole value. */
const shortened = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line;
};

const maxLength = 300;
