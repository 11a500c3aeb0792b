import { type TextClasses, textClasses } from './text-classes.js';

/**
 * Estimates the tokens of a text without a tokenizer. Per code point, with whole-number division in each
 * class: four of ASCII a token, three of CJK and Hangul two, an emoji one, three of any other script one; at least
 * one, and none for an empty text.
 */
export const estimateTokens = (text: string): number =>
  text === '' ? 0 : estimateOf(textClasses(text));

/**
 * As `estimateTokens`, with a rule for what it counts too low. Tokenizers cut numbers into groups of three digits at most, and
 * make a token of each run of signs that stands beside a number or holds a quotation mark: so JSON and tables cost up to twice of what
 * their length tells. A character of CJK costs 0.9 tokens, an emoji two. Both are middles of what `o200k_base` and
 * `cl100k_base` make of such texts.
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
