import { defer, type Observable, of } from 'rxjs';
import { failAs } from './fail-as.js';
import { isTooDeep, parsedJson } from './json.js';
import type { Validation, Validator } from './schema.js';

/**
 * Reads the structured output in the text of an answer: the whole text, or the last JSON object in it where
 * a model has put words or a fence around. Emits one verdict and completes.
 */
export const readOutput$ = (output: Validator, text: string): Observable<Validation> => {
  const value = parsedJson(text.trim()) ?? lastObjectIn(text);
  if (value === undefined) return of({ valid: false, problems: ['it holds no JSON object'] });
  if (isTooDeep(value)) return of({ valid: false, problems: ['it is nested too deeply'] });
  return defer(() => output.validation$(value)).pipe(
    failAs('unknown', "The schema of 'output' failed"),
  );
};

/** Braces in the words before an answer that are tried in vain. */
const maxStarts = 8;

/** The last JSON object in a text. A brace that nothing closes hides what follows, so that it is looked for behind it again. */
const lastObjectIn = (text: string): unknown => {
  let start = text.indexOf('{');
  for (let tries = 0; start !== -1 && tries < maxStarts; tries += 1) {
    const found = objectsIn(text.slice(start)).map(parsedJson).findLast(isThere);
    if (found !== undefined) return found;
    start = text.indexOf('{', start + 1);
  }
  return undefined;
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
