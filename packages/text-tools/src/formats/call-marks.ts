import { firstOf, type Found, maxHead } from './cursor.js';
import {
  bareCall,
  bareJsonAt,
  bareJsonCall,
  bareName,
  type Format,
  type Frame,
  frames,
  harmonyCall,
  harmonyEnds,
  harmonyHeader,
  mayBeBare,
  mayBeHarmony,
} from './formats.js';
import { plainName } from './read-calls.js';
import type { Reading } from './reading.js';

export interface CallMarksInit {
  readonly beginCall: (format: Format, toolName: string | undefined, length: number) => void;
  readonly beginThought: (length: number, closes: readonly string[]) => void;
}

/** Finds the marks of calls and messages. Those in `marks` count in text, `tokenMark` in thoughts, too. */
export const createCallMarks = (reading: Reading, init: CallMarksInit) => {
  const { formats } = reading.init;
  const harmonyMessage = harmonyMark(reading, init);
  const frameAt = frameMark(reading);
  const formatAt = formatMark(reading, init);

  const closingMark = (): Found =>
    firstOf(reading.pending, (close) => {
      const found = reading.cursor.startsWith(close);
      return found === true ? reading.drop(close.length) : found;
    });
  const callMark = (): Found => {
    if (formats.length === 0) return undefined;
    return firstOf(frames, frameAt) ?? firstOf(formats, formatAt);
  };
  const tokens = formats.filter(({ isToken }) => isToken === true);
  const tokenFrames = formats.length === 0 ? [] : frames.filter(({ isToken }) => isToken === true);
  const tokenMark = (): Found => {
    const next = reading.pending.length > 0 ? harmonyMessage() : undefined;
    return next ?? firstOf(tokenFrames, frameAt) ?? firstOf(tokens, formatAt);
  };
  return { marks: [harmonyMessage, closingMark, callMark, bareMark(reading, init)], tokenMark };
};

/** The header of a message in the channels of gpt-oss. */
const harmonyMark =
  (reading: Reading, { beginCall, beginThought }: CallMarksInit) =>
  (): Found => {
    const { cursor, init } = reading;
    const next = cursor.peek(maxHead);
    // The space before may indent it.
    if (!reading.isStart && /^\s/.test(next)) return undefined;
    const [whole, before, channel, after] = harmonyHeader.exec(next) ?? [];
    if (whole === undefined) {
      return mayBeHarmony(next, reading.isStart) && next.length < maxHead && !cursor.isEnd
        ? 'more'
        : undefined;
    }
    const recipient = before ?? after;
    if (recipient !== undefined && init.formats.length === 0) return undefined;
    reading.pending = harmonyEnds;
    if (recipient !== undefined) {
      beginCall(harmonyCall, plainName(recipient, init.tools), whole.length);
    } else if (channel === 'analysis') beginThought(whole.length, harmonyEnds);
    else {
      reading.drop(whole.length);
      reading.isStart = false;
    }
    return true;
  };

const frameMark =
  (reading: Reading) =>
  ({ open, head, close }: Frame): Found => {
    const opens = reading.cursor.startsWith(open);
    if (opens !== true) return opens;
    const found = reading.headAt(head, open.length);
    if (found === 'more' || found === undefined) return found;
    if (close !== undefined) {
      if (!reading.isStart && !reading.writer.isCut) return undefined;
      reading.pending = [...reading.pending, close];
    }
    return reading.drop(open.length + found[0].length);
  };

const formatMark =
  ({ cursor, headAt, init }: Reading, { beginCall }: CallMarksInit) =>
  (candidate: Format): Found => {
    const { open, head, startsLine, isNamed } = candidate;
    if (startsLine === true && !cursor.isLineStart) return undefined;
    const opens = cursor.startsWith(open);
    if (opens !== true) return opens;
    const found = headAt(head, open.length);
    if (found === 'more' || found === undefined) return found;
    const after = cursor.peek(maxHead, open.length);
    if (isNamed === true && bareName(after, init.tools) === undefined) return undefined;
    beginCall(candidate, found[1], open.length + found[0].length);
    return true;
  };

/** A reply that is calls as in Python or in JSON, and nothing else. */
const bareMark =
  (reading: Reading, { beginCall }: CallMarksInit) =>
  (): Found => {
    const { cursor, init } = reading;
    if (!reading.isStart || init.formats.length === 0) return undefined;
    const next = cursor.peek(maxHead);
    if (bareName(next, init.tools) !== undefined) {
      beginCall(bareCall, undefined, 0);
      return true;
    }
    const json = init.hasBareJson && bareJsonAt(next, init.tools);
    if (json === true) {
      beginCall(bareJsonCall, undefined, 0);
      return true;
    }
    const mayGrow = next.length < maxHead && !cursor.isEnd;
    if (!mayGrow) return undefined;
    return (json === 'more' && next !== '') || mayBeBare(next, init.tools) ? 'more' : undefined;
  };
