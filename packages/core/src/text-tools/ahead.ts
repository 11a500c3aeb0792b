import type { State } from './desk.js';
import {
  fenceAt,
  type FenceLine,
  type Label,
  labelAt,
  type LabelWords,
  type Mark,
  reach,
  type Tag,
  tagAt,
  type Undecided,
} from './peek.js';
import type { Tape } from './tape.js';

export interface Ahead {
  readonly label?: Mark<Label> | undefined;
  readonly tag?: Mark<Tag> | undefined;
  readonly fence?: FenceLine | undefined;
}

/** Looks for the next mark, from a place on. Without words there are no labels. */
export const ahead = (tape: Tape, words: LabelWords, offset = 0): Ahead | Undecided => {
  const { isEnd } = tape;
  const text = tape.peek(2 * reach, offset);
  const label = labelAt(text, words, isEnd);
  const tag = tagAt(text, isEnd);
  const fence = fenceAt(text.slice(0, reach), isEnd);
  return label === 'more' || tag === 'more' || fence === 'more' ? 'more' : { label, tag, fence };
};

export const behindSpace =
  (tape: Tape, atEnd: () => true, look: (text: string) => boolean): State =>
  () => {
    const text = tape.peek(reach);
    const space = text.length - text.trimStart().length;
    if (space > 0) {
      tape.take(space);
      return true;
    }
    return text === '' ? tape.isEnd && atEnd() : look(text);
  };

export const hasMark = ({ label, tag, fence }: Ahead): boolean =>
  label !== undefined || tag !== undefined || fence !== undefined;
