import { isRecord, parsedJson } from '../../json.js';
import type { Dialect, DialectOptions, DialectPrompts, WrittenResult } from '../dialect.js';
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
  { strict = false, prompts, prompt = oneBelowTheOther, words }: DialectOptions,
): Dialect => ({
  ...base,
  strict,
  words,
  completions,
  prompts: { ...commonPrompts, ...own, ...prompts },
  prompt,
});

/** A result as the user tells it. */
export const observation = ({ tool, text, isError, isOneOfMany }: WrittenResult): string =>
  `Observation: ${isOneOfMany ? `[${tool}] ` : ''}${isError ? 'Error: ' : ''}${text}`;

/** A thought behind its label, above what follows. */
export const labelledThought = (thought: string): string =>
  thought === '' ? '' : `Thought: ${thought}\n`;

/** An answer as JSON: an object stays one, as it was asked for. */
export const answerJson = (text: string): string =>
  isRecord(parsedJson(text)) ? text : JSON.stringify(text);
