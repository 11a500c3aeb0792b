import { defined, isRecord } from 'millrace/values';
import type { Fault } from './failure.js';
import type { JsonRecord } from './paths.js';

/**
 * Reads the error in a response body or the data of an event, in any shape that vendors use: an `error` with a
 * `message`, `type` or `code`, alone or in a list (Google); an `error` that is a string; or these fields at the top
 * level. Returns `undefined` if there is no error, which includes an `error` that is `null` or has none of these
 * fields.
 */
export const faultOf = (given: unknown): Fault | undefined => {
  const body: unknown = Array.isArray(given) ? given[0] : given;
  if (!isRecord(body)) return undefined;
  const { error } = body;
  if (isRecord(error)) return ifReported(faultIn(error));
  if (typeof error === 'string' && error !== '') return { ...faultIn(body), message: error };
  return error === true || isFlat(body) ? ifReported(faultIn(body)) : undefined;
};

/**
 * As `faultOf`, for a body instead of a stream: there `{ detail }` is an error too, while any event may have a detail.
 */
export const faultOfBody = (body: unknown): Fault | undefined =>
  faultOf(body) ?? (isRecord(body) ? faultOfDetail(body['detail']) : undefined);

const ifReported = (fault: Fault): Fault | undefined =>
  fault.message === undefined && fault.type === undefined && fault.code === undefined
    ? undefined
    : fault;

/** `{ message, code }` is an error, unless the code means success: some vendors send that with every event. */
const isFlat = ({ message, code, type, object }: JsonRecord): boolean =>
  typeof message === 'string' &&
  (isCode(code) || object === 'error' || (typeof type === 'string' && /error$/i.test(type)));

/** FastAPI sends `{ detail }`: a string, or a list of validation errors. */
const faultOfDetail = (detail: unknown): Fault | undefined => {
  if (typeof detail === 'string') return { message: detail };
  if (!Array.isArray(detail)) return isRecord(detail) ? ifReported(faultIn(detail)) : undefined;
  const messages = detail.map((it: unknown) => (isRecord(it) ? it['msg'] : it));
  return { message: messages.filter((it) => typeof it === 'string').join('; ') };
};

const faultIn = (fields: JsonRecord): Fault => {
  const { code } = fields;
  const message = messageIn(fields);
  // Google names the kind of an error in `status`.
  const type = [fields['type'], fields['status']].find(isWord);
  const wait = retryDelayIn(fields['details']);
  return {
    ...defined({ message, type }),
    ...(isCode(code) ? { code } : {}),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  };
};

/** OpenRouter puts the message of the provider that failed in `metadata.raw`. */
const messageIn = ({ message, metadata }: JsonRecord): string | undefined => {
  const raw = isRecord(metadata) ? metadata['raw'] : undefined;
  const texts = [message, raw].filter((it) => typeof it === 'string');
  return texts.length === 0 ? undefined : texts.join(': ');
};

/** Google's RetryInfo: `{ details: [{ retryDelay: '34.5s' }] }`. */
const retryDelayIn = (details: unknown): number | undefined => {
  if (!Array.isArray(details)) return undefined;
  const delays = details.map((it: unknown) => (isRecord(it) ? it['retryDelay'] : undefined));
  const delay = delays.find((it) => typeof it === 'string' && /^\d{1,9}(\.\d+)?s$/.test(it));
  return typeof delay === 'string' ? Math.ceil(Number.parseFloat(delay) * 1_000) : undefined;
};

const isWord = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value !== 'error';

const isCode = (value: unknown): value is string | number =>
  (typeof value === 'number' && value !== 0 && value !== 200) || isWord(value);
