import { isRecord, parsedJson } from 'millrace/values';
import { lastWord } from './start-of.js';

/** A string of an event, which may be a piece of a longer text. */
interface Piece {
  readonly text: string;
  readonly set: (text: string) => void;
}

/**
 * Cleans a body, also of secrets that are spread over the events of a stream, such as a key that the model streams: the strings
 * at the same place of each event are joined and cleaned. An event that has a part of a secret is serialized again. Of a body that
 * is not whole, the last word of each text is left out: it may be a part of a secret.
 */
export const cleanEvents = (
  body: string,
  clean: (text: string) => string,
  isWhole: boolean,
): string => {
  const lines = body.split('\n');
  const texts = new Map<string, Piece[]>();
  lines.forEach((line, index) => {
    if (!line.startsWith('data:') && !line.startsWith('{')) return;
    const [, start = '', json = ''] = /^((?:data: ?)?)(\{.*\})\r?$/su.exec(line) ?? [];
    const event = json === '' ? undefined : parsedJson(json);
    for (const { place, text, set } of stringsIn(event)) {
      const piece = {
        text,
        set: (changed: string): void => {
          set(changed);
          lines[index] = start + JSON.stringify(event);
        },
      };
      const known = texts.get(place);
      if (known === undefined) texts.set(place, [piece]);
      else known.push(piece);
    }
  });
  for (const [place, pieces] of texts) {
    const joined = pieces.map(({ text }) => text).join('');
    const cleaned = clean(joined);
    spread(pieces, joined, isWhole || !isText.test(place) ? cleaned : withoutPart(cleaned));
  }
  return clean(lines.join('\n'));
};

/** Names of strings that models stream in pieces. */
const isText = /(?:text|content|delta|arguments|json|thinking|refusal|response)$/u;

/** Shorter than any secret that would be hidden in an answer. */
const shortest = 8;

const withoutPart = (text: string): string => {
  const end = lastWord(text);
  return text.length - end < shortest ? text : text.slice(0, end);
};

/** Puts a changed text into the pieces that it is of. Those before and after the change stay as they are. */
const spread = (pieces: readonly Piece[], joined: string, changed: string): void => {
  if (joined === changed) return;
  const shorter = Math.min(joined.length, changed.length);
  let from = 0;
  while (from < shorter && joined[from] === changed[from]) from += 1;
  let tail = 0;
  while (tail < shorter - from && joined.at(-1 - tail) === changed.at(-1 - tail)) tail += 1;
  // Nothing but an insertion would be in no piece.
  if (from + tail === joined.length) [from, tail] = [Math.max(0, from - 1), 0];
  const to = joined.length - tail;
  let middle = changed.slice(from, changed.length - tail);
  let at = 0;
  for (const { text, set } of pieces) {
    const [begin, end] = [at, at + text.length];
    at = end;
    if (end <= from || begin >= to) continue;
    set(text.slice(0, Math.max(0, from - begin)) + middle + text.slice(to - begin));
    middle = '';
  }
};

/** Deeper strings are not joined. */
const deepest = 32;

/** The strings of an event, each with its place: names, and numbers such as the `index` of a tool call. */
function* stringsIn(
  value: unknown,
  path = '',
  depth = 0,
): Generator<Piece & { readonly place: string }> {
  if (depth > deepest || !(isRecord(value) || Array.isArray(value))) return;
  const numbers = Object.entries(value).filter(
    ([name, it]) => name.endsWith('index') && typeof it === 'number',
  );
  const own = `${path}${numbers.map(([name, it]) => `${name}=${String(it)}`).join()}`;
  for (const [name, it] of Object.entries(value)) {
    const place = `${own}/${name}`;
    if (typeof it === 'string')
      yield { place, text: it, set: (changed) => void Reflect.set(value, name, changed) };
    else yield* stringsIn(it, place, depth + 1);
  }
}
