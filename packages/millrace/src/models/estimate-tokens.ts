/**
 * Estimates tokens without a tokenizer, by code points with integer division per class: ASCII / 4, CJK and Hangul × 2
 * / 3, emoji × 1, other scripts / 3; at least 1, or 0 for an empty string.
 */
export const estimateTokens = (text: string): number =>
  text === '' ? 0 : estimateOf(textClasses(text));

/**
 * As `estimateTokens`, with corrections for classes it underestimates. Tokenizers split numbers into groups of up to three digits, and
 * make a token of each run of punctuation that touches a number or contains a quote, so JSON and tables cost up to twice
 * the estimate by length. A CJK character costs 0.9 tokens, an emoji 2: averages of `o200k_base` and `cl100k_base`.
 */
export const estimateText = (text: string): number => {
  if (text === '') return 0;
  const classes = textClasses(text);
  const { digits, digitGroups, signs, signRuns, cjk, emoji } = classes;
  const numbers = digitGroups - digits / 4;
  const marks = Math.max(0, signRuns - signs / 4);
  const scripts = cjk * (0.9 - 2 / 3) + emoji;
  return estimateOf(classes) + Math.round(numbers + marks + scripts);
};

const estimateOf = ({ latin, cjk, emoji, other }: TextClasses): number => {
  const whole = Math.trunc;
  return Math.max(1, whole(latin / 4) + whole((cjk * 2 + 1) / 3) + emoji + whole(other / 3));
};

interface TextClasses {
  readonly latin: number;
  readonly cjk: number;
  readonly emoji: number;
  readonly other: number;
  /** ASCII digits, and the groups of up to three that tokenizers split them into. */
  readonly digits: number;
  readonly digitGroups: number;
  /** ASCII punctuation in runs that touch a digit or contain a quote, as in JSON and tables, and these runs. */
  readonly signs: number;
  readonly signRuns: number;
}

const textClasses = (text: string): TextClasses => {
  const { length } = text;
  let cjk = 0;
  let emoji = 0;
  let other = 0;
  let latin = 0;
  let digits = 0;
  let digitGroups = 0;
  let signs = 0;
  let signRuns = 0;
  let at = 0;
  while (at < length) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) {
      const point = text.codePointAt(at) ?? code;
      if (isIn(cjkRanges, point)) cjk += 1;
      else if (isIn(emojiRanges, point)) emoji += 1;
      else other += 1;
      at += point > 0xffff ? 2 : 1;
      continue;
    }
    const kind = asciiKinds[code];
    if (kind === plain) {
      latin += 1;
      at += 1;
      continue;
    }
    const from = at;
    let isQuoted = false;
    do {
      isQuoted ||= text.charCodeAt(at) === quotationMark;
      at += 1;
    } while (at < length && asciiKinds[text.charCodeAt(at)] === kind);
    const run = at - from;
    latin += run;
    if (kind === digit) {
      digits += run;
      digitGroups += Math.ceil(run / 3);
    } else if (isQuoted || isDigit(text, from - 1) || isDigit(text, at)) {
      signs += run;
      signRuns += 1;
    }
  }
  return { latin, cjk, emoji, other, digits, digitGroups, signs, signRuns };
};

const plain = 0;
const digit = 1;
const sign = 2;
const quotationMark = 0x22;

/** Letters, white space and control characters are plain. */
const asciiKinds = Uint8Array.from({ length: 0x80 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[0-9]/.test(character)) return digit;
  return /[!-/:-@[-`{-~]/.test(character) ? sign : plain;
});

const isDigit = (text: string, at: number): boolean => asciiKinds[text.charCodeAt(at)] === digit;

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

const isIn = (ranges: Ranges, point: number): boolean =>
  ranges.some(([from, to]) => point >= from && point <= to);
