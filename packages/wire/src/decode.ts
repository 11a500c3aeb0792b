import { isMillraceError, MillraceError, type ModelChunk } from 'millrace';
import { exactJson, parsedJson, toolInput } from 'millrace/values';
import { inSentence } from './address.js';
import type { Exchange, WireEvent } from './exchange.js';
import { failure, type Fault } from './failure.js';
import { faultOf, faultOfBody } from './fault-of.js';
import type { Frame } from './framing.js';
import type { Redactor } from './redactor.js';

/** A chunk of the answer, its failure, or the sign that nothing follows. */
export type Piece = ModelChunk | Failed | { readonly type: 'done' };

/** A failure is a piece because the usage before it counts. */
interface Failed {
  readonly type: 'failed';
  readonly error: MillraceError;
}

/** How to read an answer, and how to redact it and its errors. */
export interface Decoder extends Omit<Exchange, 'secrets' | 'request' | 'fetch'> {
  readonly redactor: Redactor;
  readonly now: () => number;
  /** The address of the request, for errors. */
  readonly url: () => string | undefined;
}

/**
 * Decodes one frame of an answer. It fails with the `failure` that a vendor reports, or `invalidResponse` for unreadable data. It
 * ignores events without data, and an event that the end of the response cut off.
 */
export const decodeFrame = (decoder: Decoder, frame: Frame): readonly Piece[] => {
  switch (frame.type) {
    case 'broken':
      throw frame.error;
    case 'whole':
      return decodeWhole(decoder, frame.text);
    case 'refusal':
      return decodeRefusal(decoder, frame);
    case 'event':
      return decodeEvent(decoder, frame);
  }
};

const done: Piece = { type: 'done' };

const decodeEvent = (
  decoder: Decoder,
  { name, data: text, unterminated, isDamaged }: Extract<Frame, { type: 'event' }>,
): readonly Piece[] => {
  if (text.startsWith('[DONE]')) return [...(decoder.readDone?.() ?? []), done];
  const data = exactJson(text);
  const fault = name === 'error' ? (faultOfBody(data) ?? { message: text }) : faultOf(data);
  if (fault !== undefined) return decodeFault(decoder, data, fault);
  if (data === undefined) {
    if (unterminated || text.trim() === '') return [];
    const error = isDamaged
      ? damagedAnswer(decoder.vendor)
      : unreadable(decoder, 'an event that is not JSON', text);
    return [{ type: 'failed', error }];
  }
  const event: WireEvent = name === undefined ? { data } : { name, data };
  try {
    const isLast = decoder.isLast?.(event) === true;
    const chunks = withExactInputs(decoder.read(event));
    return isLast ? [...chunks, done] : chunks;
  } catch (thrown) {
    return failing(decoder, data, misread(decoder, text, thrown));
  }
};

/** The usage in data, and a failure. */
const failing = ({ usage }: Decoder, data: unknown, error: MillraceError): readonly Piece[] => [
  ...(usage?.(data) ?? []),
  { type: 'failed', error },
];

const decodeWhole = (decoder: Decoder, text: string): readonly Piece[] => {
  const body = exactJson(text);
  if (body === undefined) throw unreadable(decoder, 'neither a stream nor JSON', text);
  const fault = faultOfBody(body);
  if (fault !== undefined) return decodeFault(decoder, body, fault);
  try {
    const chunks = withExactInputs(decoder.readWhole(body));
    if (chunks.some(({ type }) => type === 'finish')) return chunks;
  } catch (thrown) {
    return failing(decoder, body, misread(decoder, text, thrown));
  }
  return failing(decoder, body, unreadable(decoder, 'JSON that is not an answer', text));
};

/** Arguments that came as a value: no chunk carries the bigints of `exactJson`. */
const withExactInputs = (chunks: readonly ModelChunk[]): readonly ModelChunk[] =>
  chunks.some(hasInput) ? chunks.map(withExactInput) : chunks;

const hasInput = (chunk: ModelChunk): boolean =>
  chunk.type === 'toolCall' && chunk.input !== undefined;

const withExactInput = (chunk: ModelChunk): ModelChunk => {
  if (chunk.type !== 'toolCall' || chunk.input === undefined) return chunk;
  const { input, ...rest } = chunk;
  const exact = toolInput(input);
  return 'json' in exact ? { ...rest, ...exact } : chunk;
};

const decodeRefusal = (
  decoder: Decoder,
  { head: { status, headers }, text }: Extract<Frame, { type: 'refusal' }>,
): readonly Piece[] => {
  const body = parsedJson(text);
  const fault = { message: text, ...faultOfBody(body) };
  const [url, now] = [decoder.url(), decoder.now()];
  return decodeFault(decoder, body, { ...fault, status, headers, now, url });
};

const decodeFault = (decoder: Decoder, data: unknown, fault: Fault): readonly Piece[] => {
  const { vendor, redactor, readError, usage } = decoder;
  const chunks = readError?.(data) ?? [];
  if (chunks.length > 0) return [...(usage?.(data) ?? []), ...chunks];
  // Redacted before it is truncated: half a secret would not be found.
  const message = redactor.error(fault.message ?? '');
  return failing(decoder, data, failure(vendor, { ...fault, message }));
};

/** The error of an answer whose tool calls may have lost something, or have got U+FFFD. */
export const damagedAnswer = (vendor: string): MillraceError =>
  new MillraceError(
    'connection',
    `The answer from ${inSentence(vendor)} is damaged: it has bytes that are not UTF-8, or lines that are not events. Its tool calls may differ from what the model wrote, so none runs. If a retry fails too, check the server, and the proxies in between.`,
  );

/** A reader throws a `MillraceError` on purpose; anything else means that the data has an unknown shape. */
const misread = (decoder: Decoder, text: string, thrown: unknown): MillraceError =>
  isMillraceError(thrown)
    ? thrown
    : unreadable(decoder, 'data in an unknown format', text, { cause: thrown });

const unreadable = (
  { vendor, redactor }: Decoder,
  what: string,
  text: string,
  options: ErrorOptions = {},
): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `${vendor} answered with ${what}: ${redactor.error(text).slice(0, 200)}`,
    options,
  );
