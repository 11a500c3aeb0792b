import { MillraceError } from 'millrace';
import { checkOptions, isFlag, isSameJson } from 'millrace/values';
import type { EvalTrial, Scorer } from './score.js';

/**
 * Scores 1 if the answer is that of `expected`, else 0. A string is compared with the text of the reply, without white space at
 * both ends; any other value with `reply.output`, as JSON.
 */
export const exactAnswer = (): Scorer => (trial) => {
  const { reply } = trial;
  const expected = expectedOf(trial, 'exactAnswer()');
  return typeof expected === 'string'
    ? reply.text.trim() === expected.trim()
    : isSameJson(reply.output, expected);
};

export interface IncludesTextOptions {
  /** Whether capitals count. Default: false. */
  readonly matchCase?: boolean | undefined;
}

/**
 * Scores the part of the texts that the answer includes: 0.5 if it includes one of two. Default: the `expected` of the case, a string or a list of strings.
 */
export const includesText = (
  texts?: string | readonly string[],
  options: IncludesTextOptions = {},
): Scorer => {
  checkOptions('includesText()', options, { matchCase: isFlag });
  const folded = (text: string): string => (options.matchCase === true ? text : text.toLowerCase());
  return (trial) => {
    const wanted = stringsIn(texts ?? expectedOf(trial, 'includesText()'));
    const answer = folded(trial.reply.text);
    const missing = wanted.filter((text) => !answer.includes(folded(text)));
    if (missing.length === 0) return true;
    return {
      score: 1 - missing.length / wanted.length,
      reason: `The answer does not include ${missing.map((text) => `'${text}'`).join(', ')}.`,
    };
  };
};

const expectedOf = ({ id, expected }: EvalTrial, owner: string): unknown => {
  if (expected !== undefined) return expected;
  throw new MillraceError('config', `${owner}: the case '${id}' has no 'expected'.`);
};

const stringsIn = (value: unknown): readonly string[] => {
  const texts: readonly unknown[] = Array.isArray(value) ? value : [value];
  const strings = texts.filter((text) => typeof text === 'string');
  if (strings.length > 0 && strings.length === texts.length) return strings;
  throw new MillraceError(
    'config',
    "includesText() needs a string or a list of strings, from its argument or from 'expected'.",
  );
};
