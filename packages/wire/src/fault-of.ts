import type { Fault } from './failure.js';
import { isRecord } from './json.js';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads what went wrong from the body of a response or the data of an event, in the shapes that vendors write:
 * `{ error: { message, type, code } }` (also in a list, as Google's), `{ type: 'error', error: {…} }`, `{
 * error: 'text' }`, `{ message, code }`, `{ detail }`. Undefined for a body that reports no error: `error:
 * null` is none.
 */
export const faultOf = (given: unknown): Fault | undefined => {
  const body: unknown = Array.isArray(given) ? given[0] : given;
  if (!isRecord(body)) return undefined;
  const { error, detail } = body;
  if (isRecord(error)) return faultIn(error);
  if (typeof error === 'string' && error !== '') return { ...faultIn(body), message: error };
  if (error === true || isFlat(body)) return faultIn(body);
  return faultOfDetail(detail);
};

/** `{ message, code }`, unless the code is that of success, which some vendors send with every event. */
const isFlat = ({ message, code, type, object }: Fields): boolean =>
  typeof message === 'string' &&
  (isCode(code) || object === 'error' || (typeof type === 'string' && /error$/i.test(type)));

/** `{ detail }`: FastAPI's, a text or a list of what did not validate. */
const faultOfDetail = (detail: unknown): Fault | undefined => {
  if (typeof detail === 'string') return { message: detail };
  if (!Array.isArray(detail)) return isRecord(detail) ? faultIn(detail) : undefined;
  const messages = detail.map((it: unknown) => (isRecord(it) ? it['msg'] : it));
  return { message: messages.filter((it) => typeof it === 'string').join('; ') };
};

const faultIn = (fields: Fields): Fault => {
  const { code } = fields;
  const message = messageIn(fields);
  // Google names the kind of an error in `status`.
  const type = [fields['type'], fields['status']].find(isWord);
  const wait = retryDelayIn(fields['details']);
  return {
    ...(message === undefined ? {} : { message }),
    ...(type === undefined ? {} : { type }),
    ...(isCode(code) ? { code } : {}),
    ...(wait === undefined ? {} : { retryAfterMs: wait }),
  };
};

/** OpenRouter says that a provider failed, and in `metadata.raw` what that one said. */
const messageIn = ({ message, metadata }: Fields): string | undefined => {
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
