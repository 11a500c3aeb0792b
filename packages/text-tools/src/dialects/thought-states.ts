import type { Found, ParserState, State } from './parser-state.js';
import { hasToolCall, resetToThought } from './parse-result.js';
import { type Mark, maxPeek, type Tag, tagAt } from './scanner.js';

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
    const after = cursor.peek(maxPeek, length);
    if (!cursor.isLineStart && !after.includes('\n')) {
      if (after.trim() !== '') return undefined;
      if (after.length < maxPeek && !cursor.isEnd) return 'more';
    }
    if (!cursor.isLineStart && !/^[ \t\r]*(?:\n|$)/.test(after)) return undefined;
    cursor.take(length);
    if (hasTag) endThought();
    else endAll();
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
    endAll();
    return 'found';
  };
  const endAll = (): void => {
    output.switchTo('undecided');
    output.retract();
    resetToThought(result);
    parser.followsEmbedded = false;
    cursor.isLineStart = true;
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
