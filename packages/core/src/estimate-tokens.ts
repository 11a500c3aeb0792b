/**
 * Estimates the tokens of a text without a tokenizer. Per code point, with whole-number division in each
 * class: four of ASCII a token, three of CJK and Hangul two, an emoji one, three of any other script one; at least
 * one, and none for an empty text.
 */
export const estimateTokens = (text: string): number => {
  if (text === '') return 0;
  let latin = 0;
  let cjk = 0;
  let emoji = 0;
  let other = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code <= 0x7f) latin += 1;
    else if (isIn(cjkRanges, code)) cjk += 1;
    else if (isIn(emojiRanges, code)) emoji += 1;
    else other += 1;
  }
  const whole = Math.trunc;
  return Math.max(1, whole(latin / 4) + whole((cjk * 2 + 1) / 3) + emoji + whole(other / 3));
};

type Ranges = readonly (readonly [from: number, to: number])[];

const cjkRanges: Ranges = [
  [0x4e00, 0x9fff],
  [0xac00, 0xd7af],
  [0x3040, 0x30ff],
];

const emojiRanges: Ranges = [
  [0x1f300, 0x1faff],
  [0x2600, 0x27bf],
  [0xfe00, 0xfe0f],
];

const isIn = (ranges: Ranges, code: number): boolean =>
  ranges.some(([from, to]) => code >= from && code <= to);
