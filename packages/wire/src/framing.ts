import { MillraceError } from '@millrace/core';
import { createParser } from 'eventsource-parser';
import { capExceeded } from './cap-exceeded.js';
import type { Caps } from './caps.js';

/** One part of a response, before it is decoded. */
export type Frame =
  | {
      readonly type: 'event';
      readonly name: string | undefined;
      readonly data: string;
      /** The response ended within it. */
      readonly unterminated: boolean;
    }
  /** The response is one JSON document. */
  | { readonly type: 'whole'; readonly text: string }
  /** The rest of the response cannot be read. */
  | { readonly type: 'broken'; readonly error: MillraceError };

/** Splits the text of one response into frames. */
export interface Framing {
  push(text: string): readonly Frame[];
  /** Returns the remaining frames at the end of the response. */
  end(): readonly Frame[];
}

/** The vendor and content type for errors, and the caps. */
export interface Origin {
  readonly vendor: string;
  readonly contentType: string;
  readonly caps: Caps;
}

/**
 * Creates the framing of one response. Servers send wrong content types, so the first character decides: a brace or
 * bracket starts a JSON document, `<` an HTML page, and anything else server-sent events
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 */
export const createFraming = (origin: Origin): Framing => {
  let framing: Framing | undefined;
  return {
    push: (text) => {
      if (framing === undefined) {
        const start = text.trimStart();
        if (start === '') return [];
        framing = framingOf(start, origin);
        return framing.push(start);
      }
      return framing.push(text);
    },
    end: () => framing?.end() ?? [broken(emptyBody(origin))],
  };
};

const framingOf = (start: string, origin: Origin): Framing => {
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

const wholeFraming = ({ vendor, caps }: Origin): Framing => {
  const texts: string[] = [];
  let length = 0;
  return {
    push: (text) => {
      texts.push(text);
      length += text.length;
      return length > caps.eventLength ? [broken(capExceeded(vendor, caps, 'eventLength'))] : [];
    },
    end: () => [{ type: 'whole', text: texts.join('') }],
  };
};

const eventFraming = ({ vendor, caps }: Origin): Framing => {
  let frames: Frame[] = [];
  let unterminated = false;
  const tooLong = (): number => frames.push(broken(capExceeded(vendor, caps, 'eventLength')));
  const parser = createParser({
    maxBufferSize: caps.eventLength,
    onEvent: ({ event, data }) => {
      // The parser limits what it buffers between two pushes, not an event that one push completes.
      if (data.length > caps.eventLength) tooLong();
      frames.push({ type: 'event', name: event, data, unterminated });
    },
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') tooLong();
    },
  });
  const feed = (text: string): readonly Frame[] => {
    frames = [];
    parser.feed(text);
    return frames;
  };
  return {
    push: feed,
    end: () => {
      unterminated = true;
      return feed('\n\n');
    },
  };
};

const broken = (error: MillraceError): Frame => ({ type: 'broken', error });

const emptyBody = ({ vendor }: Origin): MillraceError =>
  new MillraceError('invalidResponse', `${vendor} sent an empty response.`, { retryable: true });

const htmlBody = ({ vendor, contentType }: Origin): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `${vendor} answered with an HTML page (${contentType}) instead of a stream. Is '/v1' missing from the base URL, or does it point to a website?`,
  );
