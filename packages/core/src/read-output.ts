import { type Observable, of } from 'rxjs';
import { isTooDeep, parsedJson } from './json.js';
import type { Validation, Validator } from './schema.js';

/**
 * Reads the structured output in the text of an answer: the whole text, or the last JSON object in it where
 * a model has put words or a fence around. Emits one verdict and completes.
 */
export const readOutput$ = (output: Validator, text: string): Observable<Validation> => {
  const value = parsedJson(text.trim()) ?? objectsIn(text).map(parsedJson).findLast(isThere);
  if (value === undefined) return of({ valid: false, problems: ['it holds no JSON object'] });
  if (isTooDeep(value)) return of({ valid: false, problems: ['it is nested too deeply'] });
  return output.validation$(value);
};

const isThere = (value: unknown): boolean => value !== undefined;

/** The stretches of a text from an opening brace to the one that closes it, outermost ones only. One pass. */
const objectsIn = (text: string): readonly string[] => {
  const found: string[] = [];
  let depth = 0;
  let start = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (inString) {
      if (character === '\\') at += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') {
      inString = depth > 0;
    } else if (character === '{') {
      if (depth === 0) start = at;
      depth += 1;
    } else if (character === '}' && depth > 0) {
      depth -= 1;
      if (depth === 0) found.push(text.slice(start, at + 1));
    }
  }
  return found;
};
