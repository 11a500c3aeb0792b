import { type Piece, placesIn } from './event-strings.js';
import { type Cleaned, lastWord } from './start-of.js';

/** A change of a body: the JSON of another string. */
interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/**
 * Cleans a body, also of secrets that are spread over the events of a stream, such as a key that the model streams: the strings
 * at the same place of each event are joined and cleaned. Only strings that have a part of a secret are serialized again. Of a
 * body that is not whole, the last word of each text that is not complete is left out: it may be a part of a secret.
 */
export const cleanEvents = (
  body: string,
  clean: (text: string) => string,
  isWhole: boolean,
): Cleaned => {
  const edits: Edit[] = [];
  let omitted = 0;
  for (const { name, pieces, isDone } of placesIn(body)) {
    const joined = pieces.map(({ text }) => text).join('');
    const cleaned = clean(joined);
    const isComplete = isWhole || isDone() || !isText.test(name);
    const shown = isComplete ? cleaned : withoutPart(cleaned);
    omitted += cleaned.length - shown.length;
    for (const edit of editsOf(pieces, joined, shown)) edits.push(edit);
  }
  return { text: clean(edited(body, edits)), omitted };
};

/** Names of strings that models stream in pieces. */
const isText = /(?:text|content|delta|arguments|json|thinking|refusal|response)$/u;

/** Shorter than any secret that would be hidden in an answer. */
const shortest = 8;

const withoutPart = (text: string): string => {
  const end = lastWord(text);
  return text.length - end < shortest ? text : text.slice(0, end);
};

/** The edits of the pieces that a change is of. Those before and after the change stay as they are. */
const editsOf = (pieces: readonly Piece[], joined: string, changed: string): readonly Edit[] => {
  if (joined === changed) return [];
  const shorter = Math.min(joined.length, changed.length);
  let start = 0;
  while (start < shorter && joined[start] === changed[start]) start += 1;
  let tail = 0;
  while (tail < shorter - start && joined.at(-1 - tail) === changed.at(-1 - tail)) tail += 1;
  // Nothing but an insertion would be in no piece.
  if (start + tail === joined.length) [start, tail] = [Math.max(0, start - 1), 0];
  const stop = joined.length - tail;
  let middle = changed.slice(start, changed.length - tail);
  let at = 0;
  return pieces.flatMap(({ text, from, to }) => {
    const [begin, end] = [at, at + text.length];
    at = end;
    if (end <= start || begin >= stop) return [];
    const own = text.slice(0, Math.max(0, start - begin)) + middle + text.slice(stop - begin);
    middle = '';
    return [{ from, to, text: JSON.stringify(own) }];
  });
};

const edited = (body: string, edits: Edit[]): string => {
  edits.sort((one, other) => one.from - other.from);
  let at = 0;
  const parts = edits.flatMap(({ from, to, text }) => {
    const kept = body.slice(at, from);
    at = to;
    return [kept, text];
  });
  return parts.join('') + body.slice(at);
};
