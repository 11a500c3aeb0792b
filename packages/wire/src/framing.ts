import { MillraceError } from '@millrace/core';
import { createParser } from 'eventsource-parser';
import type { Caps } from './caps.js';
import { overCap } from './over-cap.js';

/** A piece of a response, before it is decoded. */
export type Frame =
  | {
      readonly type: 'event';
      readonly name: string | undefined;
      readonly data: string;
      /** The response ended within it. */
      readonly unterminated: boolean;
    }
  /** The response is one JSON text. */
  | { readonly type: 'whole'; readonly text: string }
  /** Nothing that follows can be read. */
  | { readonly type: 'broken'; readonly error: MillraceError };

/** Cuts the text of one response into frames. */
export interface Framing {
  push(text: string): readonly Frame[];
  /** The rest, when the text has come to its end. */
  end(): readonly Frame[];
}

/** Whose response it is, for errors. */
export interface Origin {
  readonly vendor: string;
  readonly contentType: string;
  readonly caps: Caps;
}

/**
 * Begins to cut a response. What it is, its first character tells, because servers mislabel: a brace or a
 * bracket begins an answer that comes whole, `<` a page of HTML, all else are server-sent events
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 */
export const createFraming = (origin: Origin): Framing => {
  let framing: Framing | undefined;
  return {
    push: (text) => {
      if (framing === undefined) {
        const begun = text.trimStart();
        if (begun === '') return [];
        framing = framingOf(begun, origin);
        return framing.push(begun);
      }
      return framing.push(text);
    },
    end: () => framing?.end() ?? [broken(emptyBody(origin))],
  };
};

const framingOf = (begun: string, origin: Origin): Framing => {
  switch (begun.charAt(0)) {
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
      return length > caps.eventLength ? [broken(overCap(vendor, caps, 'eventLength'))] : [];
    },
    end: () => [{ type: 'whole', text: texts.join('') }],
  };
};

const eventFraming = ({ vendor, caps }: Origin): Framing => {
  let frames: Frame[] = [];
  let unterminated = false;
  const tooLong = (): number => frames.push(broken(overCap(vendor, caps, 'eventLength')));
  const parser = createParser({
    maxBufferSize: caps.eventLength,
    onEvent: ({ event, data }) => {
      // The parser measures what it keeps between two pieces, not what one piece completes.
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
  new MillraceError('invalidResponse', `${vendor} answered with nothing.`, { retryable: true });

const htmlBody = ({ vendor, contentType }: Origin): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `${vendor} answered with a page of HTML (${contentType}) instead of a stream. Does the base URL lack '/v1', or name a website?`,
  );
