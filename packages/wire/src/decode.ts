import { isMillraceError, MillraceError, type ModelChunk } from '@millrace/core';
import type { Exchange } from './exchange.js';
import { failure } from './failure.js';
import { faultOf } from './fault-of.js';
import type { Frame } from './framing.js';
import { parseJson } from './json.js';

/** What a frame says: a piece of the answer, or that nothing follows. */
export type Piece = ModelChunk | { readonly type: 'done' };

type Decoder = Pick<Exchange, 'vendor' | 'read' | 'readWhole'>;

/**
 * Reads a frame, its secrets taken out by `clean`. Throws the `failure` that a vendor reports, and
 * `invalidResponse` for what cannot be read. An event without data, and one that the end of the response cut,
 * are passed over.
 */
export const decode = (
  decoder: Decoder,
  clean: (text: string) => string,
  frame: Frame,
): readonly Piece[] => {
  switch (frame.type) {
    case 'broken':
      throw frame.error;
    case 'whole':
      return decodeWhole(decoder, clean(frame.text));
    case 'event':
      return decodeEvent(decoder, { ...frame, data: clean(frame.data) });
  }
};

const decodeEvent = (
  { vendor, read }: Decoder,
  { name, data: text, unterminated }: Extract<Frame, { type: 'event' }>,
): readonly Piece[] => {
  if (text.startsWith('[DONE]')) return [{ type: 'done' }];
  const data = parseJson(text);
  if (name === 'error') throw failure(vendor, faultOf(data) ?? { message: text });
  if (data === undefined) {
    if (unterminated || text.trim() === '') return [];
    throw unreadable(vendor, 'an event that is no JSON', text);
  }
  throwFault(vendor, data);
  return understood(vendor, text, () => read({ ...(name === undefined ? {} : { name }), data }));
};

const decodeWhole = ({ vendor, readWhole }: Decoder, text: string): readonly Piece[] => {
  const body = parseJson(text);
  if (body === undefined) throw unreadable(vendor, 'what is neither a stream nor JSON', text);
  throwFault(vendor, body);
  const chunks = understood(vendor, text, () => readWhole(body));
  if (chunks.some(({ type }) => type === 'finish')) return chunks;
  throw unreadable(vendor, 'a JSON that is no answer', text);
};

const throwFault = (vendor: string, data: unknown): void => {
  const fault = faultOf(data);
  if (fault !== undefined) throw failure(vendor, fault);
};

/** A reader may trip over a shape that no vendor has written before. */
const understood = (
  vendor: string,
  text: string,
  read: () => readonly ModelChunk[],
): readonly ModelChunk[] => {
  try {
    return read();
  } catch (thrown) {
    throw isMillraceError(thrown)
      ? thrown
      : unreadable(vendor, 'what cannot be understood', text, thrown);
  }
};

const unreadable = (vendor: string, what: string, text: string, cause?: unknown): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `${vendor} answered with ${what}: ${text.slice(0, 200)}`,
    cause === undefined ? {} : { cause },
  );
