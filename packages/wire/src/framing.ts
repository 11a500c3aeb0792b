import { MillraceError } from 'millrace';
import { createParser } from 'eventsource-parser';
import { capExceeded, type Caps } from './caps.js';
import type { ResponseHead } from './exchange.js';
import { createUtf8, type DecodedText } from './utf8.js';

/** One part of a response, before it is decoded. */
export type Frame =
  | {
      readonly type: 'event';
      readonly name: string | undefined;
      readonly data: string;
      /** The response ended within it. */
      readonly unterminated: boolean;
      /** It has, or follows, bytes that are not UTF-8, or a line that is dropped. */
      readonly isDamaged: boolean;
    }
  /** The response is one JSON document. */
  | { readonly type: 'whole'; readonly text: string; readonly isDamaged: boolean }
  /** The response has the status of an error; the start of its body. */
  | { readonly type: 'refusal'; readonly head: ResponseHead; readonly text: string }
  /** The rest of the response cannot be read. */
  | { readonly type: 'broken'; readonly error: MillraceError };

/** Splits the body of one response into frames. */
export interface Framing<Data = Uint8Array> {
  push(data: Data): readonly Frame[];
  /** Returns the remaining frames at the end of the response. */
  end(): readonly Frame[];
}

/** The response, its vendor for errors, and the caps. */
interface Origin {
  readonly vendor: string;
  readonly head: ResponseHead;
  readonly caps: Caps;
}

export const isSuccess = ({ status }: ResponseHead): boolean => status >= 200 && status < 300;

/**
 * Creates the framing of one response. Servers send wrong content types, so the first character decides: a brace or
 * bracket starts a JSON document, `<` an HTML page, and anything else server-sent events
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 */
export const createFraming = (origin: Origin): Framing => {
  if (!isSuccess(origin.head)) return refusalFraming(origin);
  const utf8 = createUtf8();
  let framing: Framing<DecodedText> | undefined;
  const push = (part: DecodedText): readonly Frame[] => {
    if (framing !== undefined) return framing.push(part);
    const text = part.text.trimStart();
    if (text === '') return [];
    framing = framingOf(text, origin);
    return framing.push({ ...part, text });
  };
  return {
    push: (bytes) => utf8.lines(bytes).flatMap(push),
    // A character that the end of the response cuts off is no damage.
    end: () => [
      ...push({ text: utf8.end(), isDamaged: false }),
      ...(framing?.end() ?? [broken(emptyBody(origin))]),
    ],
  };
};

/** Reads no more than `caps.errorBytes`. */
const refusalFraming = ({ head, caps: { errorBytes } }: Origin): Framing => {
  const utf8 = createUtf8();
  const texts: string[] = [];
  let left = errorBytes;
  const end = (): readonly Frame[] => [
    { type: 'refusal', head, text: texts.join('') + utf8.end() },
  ];
  return {
    push: (bytes) => {
      texts.push(utf8.push(bytes.subarray(0, Math.max(0, left))));
      left -= bytes.length;
      return left > 0 ? [] : end();
    },
    end,
  };
};

const framingOf = (start: string, origin: Origin): Framing<DecodedText> => {
  switch (start.charAt(0)) {
    case '{':
    case '[':
      return wholeFraming(origin);
    case '<':
      return { push: () => [broken(htmlBody(origin))], end: () => [] };
    default:
      return eventFraming(origin);
  }
};

const wholeFraming = ({ vendor, caps }: Origin): Framing<DecodedText> => {
  const texts: string[] = [];
  let length = 0;
  let hasDamage = false;
  return {
    push: ({ text, isDamaged }) => {
      texts.push(text);
      length += text.length;
      hasDamage ||= isDamaged;
      return length > caps.eventLength ? [broken(capExceeded(vendor, caps, 'eventLength'))] : [];
    },
    end: () => [{ type: 'whole', text: texts.join(''), isDamaged: hasDamage }],
  };
};

const eventFraming = ({ vendor, caps }: Origin): Framing<DecodedText> => {
  let frames: Frame[] = [];
  let unterminated = false;
  let isOver = false;
  /** Whether the text being parsed is damaged, and whether the event under way is, or one before it that was not parsed. */
  let isTextDamaged = false;
  let isDamaged = false;
  const tooLong = (): void => {
    isOver = true;
    frames.push(broken(capExceeded(vendor, caps, 'eventLength')));
  };
  const parser = createParser({
    maxBufferSize: caps.eventLength,
    onEvent: ({ event, data }) => {
      // The parser limits what it buffers between two pushes, not an event that one push completes.
      if (data.length > caps.eventLength) tooLong();
      frames.push({ type: 'event', name: event, data, unterminated, isDamaged });
      isDamaged = isTextDamaged;
    },
    onError: ({ type, line = '' }) => {
      if (type === 'max-buffer-size-exceeded') tooLong();
      // The parser drops a line that it does not know. It may have held a part of an answer, unlike fields and words of a proxy.
      else if (answerLine.test(line)) isDamaged = true;
    },
  });
  const feed = (part: DecodedText): readonly Frame[] => {
    frames = [];
    isTextDamaged = part.isDamaged;
    isDamaged ||= isTextDamaged;
    // The parser takes nothing more once it has too much.
    if (!isOver) parser.feed(part.text);
    return frames;
  };
  return {
    push: feed,
    end: () => {
      unterminated = true;
      return feed({ text: '\n\n', isDamaged: false });
    },
  };
};

/** A line that is data but for its start: with a space or a byte order mark before its name, or without the name. */
const answerLine = /^[^\w{]*(?:data\b.*)?\{/i;

const broken = (error: MillraceError): Frame => ({ type: 'broken', error });

const emptyBody = ({ vendor }: Origin): MillraceError =>
  new MillraceError('invalidResponse', `${vendor} sent an empty response.`, { retryable: true });

const htmlBody = ({ vendor, head }: Origin): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `${vendor} answered with an HTML page (${head.headers.get('content-type') ?? 'no content type'}) instead of a stream. Is '/v1' missing from the base URL, or does it point to a website?`,
  );
