/** A character that takes two columns, with what joins it. */
const wide =
  '(?:[\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Hangul}\\u3000-\\u303f\\uff01-\\uff60\\uffe0-\\uffe6]|\\p{Emoji_Presentation})(?:\\ufe0f|\\u200d.|\\p{M})*';

const wideCharacter = new RegExp(`^${wide}$`, 'u');
const withoutColumn = /\u001b\[[\d;]*m|\p{M}|\p{Cf}/gu; // eslint-disable-line no-control-regex

/** A line break, space, a colour, a wide character, or a word. A line may break before a wide character. */
const piece = new RegExp(
  `\\n|[^\\S\\n]+|\\u001b\\[[\\d;]*m|${wide}|(?:(?!${wide})[^\\s\\u001b])+|\\u001b`,
  'gu',
);

/** Splits text into line breaks, spaces, colours, wide characters and words. Joined, they are the text. */
export const piecesOf = (text: string): readonly string[] => text.match(piece) ?? [];

export const isWide = (text: string): boolean => wideCharacter.test(text);

/** The number of columns that one line of text takes in a terminal. */
export const columnsOf = (text: string): number =>
  piecesOf(text).reduce(
    (sum, part) => sum + (isWide(part) ? 2 : Array.from(part.replaceAll(withoutColumn, '')).length),
    0,
  );
