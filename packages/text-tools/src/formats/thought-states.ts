import { firstOf, type Found, maxHead } from './cursor.js';
import type { Reading, State } from './reading.js';

/** `tokenMark` looks for the marks that end a thought, too. */
export const createThoughtStates = (reading: Reading, tokenMark: () => Found) => {
  const { cursor, writer } = reading;
  const { tags, isOpened } = reading.init;
  let closes: readonly string[] = [];

  const openThought = (): Found =>
    reading.isStart
      ? firstOf(tags, ([open, close]) => {
          const found = cursor.startsWith(open);
          if (found === true) beginThought(open.length, [close]);
          return found;
        })
      : undefined;
  const beginThought = (length: number, closing: readonly string[]): void => {
    if (length > 0) reading.drop(length);
    closes = closing;
    reading.hasThought = true;
    reading.state = thought;
  };
  const thought: State = () => {
    if (cursor.left === 0) return false;
    const opening = isOpened && writer.isEmpty ? openingMark() : undefined;
    if (opening !== undefined) return opening === true;
    const closing = firstOf(closes, (close) => {
      const found = cursor.startsWith(close);
      return found === true ? endThought(close.length) : found;
    });
    if (closing !== undefined) return closing === true;
    // The marks of calls and messages end a thought, too, if they are tokens.
    reading.toText();
    const ended = closes;
    const found = tokenMark();
    if (found === true) {
      reading.interrupted = ended.filter((close) => !reading.pending.includes(close));
      return true;
    }
    reading.state = thought;
    if (found === 'more') return false;
    writer.write('thinking', cursor.takeThought());
    return true;
  };
  /** A model may write the opening mark nevertheless. */
  const openingMark = (): Found =>
    firstOf(tags, ([open]) => {
      const found = cursor.startsWith(open);
      return found === true ? reading.drop(open.length) : found;
    });
  const endThought = (length: number): true => {
    reading.isStart = true;
    reading.toText();
    return reading.drop(length);
  };
  const lateClose = (): Found =>
    firstOf(reading.interrupted, (close) => {
      const found = cursor.startsWith(close);
      if (found !== true) return found;
      const drafts = reading.held.map(({ written }) => written).join('');
      reading.held = [];
      reading.interrupted = [];
      reading.draft = drafts === '' ? undefined : drafts;
      reading.hasText = false;
      writer.write('thinking', drafts);
      return endThought(close.length);
    });
  return { begin: beginThought, thought, marks: [openThought, lateClose, strayClose(reading)] };
};

/** The end of a thought that the chat template has opened: all text before it was the thought. */
const strayClose = (reading: Reading) => (): Found =>
  reading.hasThought
    ? undefined
    : firstOf(reading.init.tags, ([, close]) => {
        const { cursor, writer, init } = reading;
        const found = cursor.startsWith(close);
        if (found !== true) return found;
        const after = cursor.peek(maxHead, close.length);
        const isLast = /^[ \t\r]*(?:\n|$)/.test(after);
        const mayGrow = !cursor.isEnd && after.length < maxHead && after.trim() === '';
        if (!cursor.isLineStart && isLast && mayGrow && !after.includes('\n')) return 'more';
        if (!cursor.isLineStart && !isLast) return undefined;
        reading.quoteHeld(false);
        reading.hasText = false;
        if (init.mayRetract()) {
          writer.retract('thinking', 'The text before the answer was a thought.');
        }
        reading.hasThought = true;
        reading.isStart = true;
        return reading.drop(close.length);
      });
