import { isRecord, parsedJson } from '../../json.js';
import type { Dialect, DialectOptions, DialectPrompts, WrittenResult } from '../dialect.js';
import { checkOptions, defined, isFlag, isFunction, isObject, type Rule } from '../../options.js';
import { commonPrompts, oneBelowTheOther } from '../prompts.js';

/** What a dialect says of itself; the rest is common to all. */
export type DialectBase = Omit<
  Dialect,
  'strict' | 'prompts' | 'prompt' | 'completions' | 'words'
> & {
  readonly prompts: Pick<DialectPrompts, 'format' | 'forms'>;
  readonly completions?: readonly string[];
};

/** Makes a dialect, with what is told otherwise of it. */
export const makeDialect = (
  { prompts: own, completions = [], ...base }: DialectBase,
  options: DialectOptions,
): Dialect => {
  const standard = { ...commonPrompts, ...own };
  checkOptions(`${base.name}Dialect()`, options, rules);
  const { strict = false, words, prompts = {}, prompt = oneBelowTheOther } = options;
  const parts = Object.fromEntries(Object.keys(standard).map((name) => [name, isFunction]));
  checkOptions(`${base.name}Dialect(): 'prompts'`, prompts, parts);
  return {
    ...base,
    strict,
    words,
    completions,
    prompts: { ...standard, ...defined(prompts) },
    prompt,
  };
};

const rules: Readonly<Record<keyof DialectOptions, Rule>> = {
  strict: isFlag,
  words: isObject,
  prompts: isObject,
  prompt: isFunction,
};

/** A result as the user tells it. */
export const observation = ({ tool, text, isError, isOneOfMany }: WrittenResult): string =>
  `Observation: ${isOneOfMany ? `[${tool}] ` : ''}${isError ? 'Error: ' : ''}${text}`;

/** A thought behind its label, above what follows. */
export const labelledThought = (thought: string): string =>
  thought === '' ? '' : `Thought: ${thought}\n`;

/** An answer as JSON: an object stays one, as it was asked for. */
export const answerJson = (text: string): string =>
  isRecord(parsedJson(text)) ? text : JSON.stringify(text);
