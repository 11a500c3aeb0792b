import type { Cursor } from '../cursor.js';
import type { ParserState, Found } from './parser-state.js';
import { lookAhead, fenceAt, type FenceLine, maxPeek, type Undecided } from './scanner.js';

export interface FenceHandlers {
  readonly bareJson: (offset: number, fence: string, isWhole: boolean) => Found;
  readonly isPreamble: () => boolean;
}

export const createFenceMarks = (parser: ParserState, { bareJson, isPreamble }: FenceHandlers) => {
  const { cursor } = parser;

  const endCode = (marks: string): Found => {
    if (!cursor.isLineStart) return undefined;
    const fence = fenceAt(cursor.peek(maxPeek), cursor.isEnd);
    if (fence === 'more') return 'more';
    if (fence?.isBare === true && fence.marks.startsWith(marks)) {
      parser.code = undefined;
      parser.addText(cursor.take(fence.length));
      return 'found';
    }
    return undefined;
  };
  /** A fence opens code, unless it closes the one around the whole reply. */
  const inAnswer = ({ length, marks, isBare }: FenceLine): Found => {
    if (isBare && parser.openFences > 0) {
      const after = cursor.peek(maxPeek, length);
      if (after.trim() === '' && after.length < maxPeek) {
        if (!cursor.isEnd) return 'more';
        cursor.take(length);
        return 'found';
      }
    }
    parser.code = marks;
    parser.addText(cursor.take(length));
    return 'found';
  };
  /** Fences around an action or a whole reply are dropped; around anything else, they are text. */
  const open = (): Found => {
    const first = fenceAt(cursor.peek(maxPeek), cursor.isEnd);
    if (first !== 'more' && first?.isBare === true && closeFence(parser)) {
      cursor.take(first.length);
      return 'found';
    }
    const fences = fencesHere(cursor);
    if (fences === 'more' || fences === undefined) return fences;
    const { offset, marks, isWhole } = fences;
    const next = lookAhead(cursor, parser.words, offset);
    if (next === 'more') return 'more';
    const { label, tag } = next;
    const isAction = tag?.type === 'call' || tag?.type === 'function' || tag?.type === 'action';
    // No dialect has tags in a fence: after prose, they are an example.
    if (isWhole && (label !== undefined || (isAction && !isPreamble()))) {
      parser.isTemplate = isPreamble();
      cursor.take(offset);
      cursor.isLineStart = true;
      parser.openFences += 1;
      return 'found';
    }
    const bare = bareJson(offset, marks, isWhole);
    if (bare !== undefined) return bare;
    parser.code = marks;
    parser.addText(cursor.take(cursor.lengthUntil(/\n/g, 0) + 1));
    return 'found';
  };
  return { open, endCode, inAnswer };
};

/** The opening fences that follow each other here: their end, and whether they may be around an action. */
const fencesHere = (
  cursor: Cursor,
):
  | { readonly offset: number; readonly marks: string; readonly isWhole: boolean }
  | Undecided
  | undefined => {
  let offset = 0;
  let marks: string | undefined;
  let isWhole = true;
  for (;;) {
    const fence = fenceAt(cursor.peek(maxPeek, offset), cursor.isEnd);
    if (fence === 'more') return 'more';
    if (fence === undefined || offset > 2 * maxPeek) break;
    marks ??= fence.marks;
    isWhole &&= /^[`~]+[ \t]*(?:json|jsonc|json5|tool_call|tool_code)?\s*$/i.test(
      cursor.peek(fence.length, offset),
    );
    offset += fence.length;
    const space = cursor.peek(maxPeek, offset);
    offset += space.length - space.trimStart().length;
    if (cursor.left === offset && !cursor.isEnd) return 'more';
  }
  return marks === undefined ? undefined : { offset, marks, isWhole };
};

export const closeFence = (parser: ParserState): boolean => {
  if (parser.openFences === 0) return false;
  parser.openFences -= 1;
  parser.followsTemplate = parser.isTemplate && parser.result.calls.length > 0;
  return true;
};
