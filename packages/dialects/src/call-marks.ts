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

export const createCallMarks = (reading: Reading, { beginCall, beginThought }: CallMarksInit) => {
  const { cursor, writer, init } = reading;
  const { formats, tools } = init;

  /** The header of a message in the channels of gpt-oss. */
  const harmonyMessage = (): Found => {
    const next = cursor.peek();
    // The space before may indent it.
    if (!reading.isStart && /^\s/.test(next)) return undefined;
    const [whole, before, channel, after] = harmonyHeader.exec(next) ?? [];
    if (whole === undefined) {
      return mayBeHarmony(next, reading.isStart) && next.length < maxHead && !cursor.isEnd
        ? 'more'
        : undefined;
    }
    const recipient = before ?? after;
    if (recipient !== undefined && formats.length === 0) return undefined;
    reading.pending = harmonyEnds;
    if (recipient !== undefined) beginCall(harmonyCall, plainName(recipient, tools), whole.length);
    else if (channel === 'analysis') beginThought(whole.length, harmonyEnds);
    else {
      reading.drop(whole.length);
      reading.isStart = false;
    }
    return true;
  };
  const closingMark = (): Found =>
    firstOf(reading.pending, (close) => {
      const found = cursor.startsWith(close);
      return found === true ? reading.drop(close.length) : found;
    });
  const frameAt = ({ open, head, close }: Frame): Found => {
    const opens = cursor.startsWith(open);
    if (opens !== true) return opens;
    const found = reading.headAt(head, open.length);
    if (found === 'more' || found === undefined) return found;
    if (close !== undefined) {
      if (!reading.isStart && !writer.isCut) return undefined;
      reading.pending = [...reading.pending, close];
    }
    return reading.drop(open.length + found[0].length);
  };
  const formatAt = (candidate: Format): Found => {
    const { open, head, startsLine, isNamed } = candidate;
    if (startsLine === true && !cursor.isLineStart) return undefined;
    const opens = cursor.startsWith(open);
    if (opens !== true) return opens;
    const found = reading.headAt(head, open.length);
    if (found === 'more' || found === undefined) return found;
    const after = cursor.peek(maxHead, open.length);
    if (isNamed === true && bareName(after, tools) === undefined) return undefined;
    beginCall(candidate, found[1], open.length + found[0].length);
    return true;
  };
  const callMark = (): Found => {
    if (formats.length === 0) return undefined;
    return firstOf(frames, frameAt) ?? firstOf(formats, formatAt);
  };
  /** A reply that is calls as in Python, and nothing else. */
  const bareMark = (): Found => {
    if (!reading.isStart || formats.length === 0) return undefined;
    const next = cursor.peek();
    if (bareName(next, tools) !== undefined) {
      beginCall(bareCall, undefined, 0);
      return true;
    }
    const json = init.hasBareJson && bareJsonAt(next, tools);
    if (json === true) {
      beginCall(bareJsonCall, undefined, 0);
      return true;
    }
    if (json === 'more' && next !== '' && next.length < maxHead && !cursor.isEnd) return 'more';
    return mayBeBare(next, tools) && next.length < maxHead && !cursor.isEnd ? 'more' : undefined;
  };
  const tokens = formats.filter(({ isToken }) => isToken === true);
  const tokenFrames = formats.length === 0 ? [] : frames.filter(({ isToken }) => isToken === true);
  const tokenMark = (): Found => {
    const next = reading.pending.length > 0 ? harmonyMessage() : undefined;
    return next ?? firstOf(tokenFrames, frameAt) ?? firstOf(tokens, formatAt);
  };
  return { marks: [harmonyMessage, closingMark, callMark, bareMark], tokenMark };
};
