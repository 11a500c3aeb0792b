import { isMillraceError, MillraceError, type ModelChunk } from '@millrace/core';
import { cleanJson } from './clean-json.js';
import type { Exchange, WireEvent } from './exchange.js';
import { type Fault, failure } from './failure.js';
import { faultOf, faultOfBody } from './fault-of.js';
import type { Frame } from './framing.js';
import type { Redactor } from './redactor.js';

/** What a frame says: a piece of the answer, or that nothing follows. */
export type Piece = ModelChunk | { readonly type: 'done' };

/** How to read an answer, and what to take out of it and of its errors. */
type Decoder = Pick<Exchange, 'vendor' | 'read' | 'readWhole' | 'isLast'> & {
  readonly redactor: Redactor;
};

/**
 * Reads the frames of one read of the network, their secrets taken out: what came before a fault is there
 * before it is thrown. Throws the `failure` that a vendor reports, and `invalidResponse` for what cannot be read. An
 * event without data, and one that the end of the response cut, are passed over.
 */
export function* decode(
  decoder: Decoder,
  frames: readonly Frame[],
): Generator<Piece, void, undefined> {
  for (const frame of frames) yield* decodeFrame(decoder, frame);
}

const decodeFrame = (decoder: Decoder, frame: Frame): readonly Piece[] => {
  switch (frame.type) {
    case 'broken':
      throw frame.error;
    case 'whole':
      return decodeWhole(decoder, frame.text);
    case 'event':
      return decodeEvent(decoder, frame);
  }
};

const done: Piece = { type: 'done' };
const isNone = (): boolean => false;

const decodeEvent = (
  decoder: Decoder,
  { name, data: text, unterminated }: Extract<Frame, { type: 'event' }>,
): readonly Piece[] => {
  const { read, isLast = isNone } = decoder;
  if (text.startsWith('[DONE]')) return [done];
  const data = cleanJson(text, decoder.redactor.answer);
  if (name === 'error') throw reported(decoder, faultOfBody(data) ?? { message: text });
  if (data === undefined) {
    if (unterminated || text.trim() === '') return [];
    throw unreadable(decoder, 'an event that is no JSON', text);
  }
  throwFault(decoder, faultOf(data));
  const event: WireEvent = { ...(name === undefined ? {} : { name }), data };
  return understood(decoder, text, () => (isLast(event) ? [...read(event), done] : read(event)));
};

const decodeWhole = (decoder: Decoder, text: string): readonly Piece[] => {
  const body = cleanJson(text, decoder.redactor.answer);
  if (body === undefined) throw unreadable(decoder, 'what is neither a stream nor JSON', text);
  throwFault(decoder, faultOfBody(body));
  const chunks = understood(decoder, text, () => decoder.readWhole(body));
  if (chunks.some(({ type }) => type === 'finish')) return chunks;
  throw unreadable(decoder, 'a JSON that is no answer', text);
};

const throwFault = (decoder: Decoder, fault: Fault | undefined): void => {
  if (fault !== undefined) throw reported(decoder, fault);
};

/** Clean before it is shortened: half a secret would not be found. */
const reported = ({ vendor, redactor }: Decoder, fault: Fault): MillraceError =>
  failure(vendor, { ...fault, message: redactor.error(fault.message ?? '') });

/** A reader may trip over a shape that no vendor has written before. */
const understood = (
  decoder: Decoder,
  text: string,
  read: () => readonly Piece[],
): readonly Piece[] => {
  try {
    return read();
  } catch (thrown) {
    throw isMillraceError(thrown)
      ? thrown
      : unreadable(decoder, 'what cannot be understood', text, thrown);
  }
};

const unreadable = (
  { vendor, redactor }: Decoder,
  what: string,
  text: string,
  cause?: unknown,
): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `${vendor} answered with ${what}: ${redactor.error(text).slice(0, 200)}`,
    cause === undefined ? {} : { cause },
  );
