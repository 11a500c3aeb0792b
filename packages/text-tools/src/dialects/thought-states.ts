import type { Cursor } from '../cursor.js';
import type { Found, ParserState, State } from './parser-state.js';
import { hasToolCall, resetToThought } from './parse-result.js';
import { type Mark, maxPeek, type Tag, tagAt, type Undecided } from './scanner.js';

export const createThoughtStates = (parser: ParserState) => {
  const { result, cursor, output } = parser;
  let hasTag = false;

  const begin = ({ length }: Mark<Tag>): Found => {
    if (!cursor.isLineStart) return undefined;
    hasTag = true;
    cursor.take(length);
    output.beginThought();
    parser.state = thinking;
    return 'found';
  };
  /** The end of a thought without a start tag: all text before it was a thought. Within a line, it does not count. */
  const end = ({ length }: Mark<Tag>): Found => {
    const isLast = cursor.isLineStart || endsLine(cursor, length);
    if (isLast === 'more') return 'more';
    if (!isLast) return undefined;
    cursor.take(length);
    if (hasTag) endThought();
    else endAll(parser);
    return 'found';
  };
  /** The same after an answer, which was a draft if more text follows. */
  const endDraft = ({ length }: Mark<Tag>): Found => {
    if (hasTag) return undefined;
    const after = cursor.peek(maxPeek, length);
    if (after.trim() === '' && after.length < maxPeek) {
      if (!cursor.isEnd) return 'more';
      cursor.take(length);
      return 'found';
    }
    if (!/^[ \t\r]*\n/.test(after)) return undefined;
    cursor.take(length);
    endAll(parser);
    return 'found';
  };
  const endThought = (): void => {
    output.emitter.close();
    if (output.channel === 'thought' && result.answer === undefined && !hasToolCall(result)) {
      output.switchTo('undecided');
    }
    cursor.isLineStart = true;
  };
  const thinking: State = () => {
    if (cursor.left === 0) return false;
    const tag = tagAt(cursor.peek(maxPeek), cursor.isEnd);
    if (tag === 'more') return false;
    if (tag?.type === 'unthink') {
      cursor.take(tag.length);
      endThought();
      parser.toProse();
      return true;
    }
    output.emitter.write('thinking', cursor.take(cursor.lengthUntil(/</g, 1)));
    return true;
  };
  return { begin, end, endDraft };
};

/** Whether nothing but space follows a mark of this length on its line. */
const endsLine = (cursor: Cursor, length: number): boolean | Undecided => {
  const after = cursor.peek(maxPeek, length);
  const mayGrow = after.trim() === '' && after.length < maxPeek && !cursor.isEnd;
  return mayGrow && !after.includes('\n') ? 'more' : /^[ \t\r]*(?:\n|$)/.test(after);
};

/** All text so far was a thought. */
const endAll = (parser: ParserState): void => {
  parser.output.switchTo('undecided');
  parser.output.retract();
  resetToThought(parser.result);
  parser.followsEmbedded = false;
  parser.cursor.isLineStart = true;
};
