import { defer, type Observable, of } from 'rxjs';
import { failAs } from './errors.js';
import { type JsonReading, readJson, readStrictly } from './json-text/read-json.js';
import type { Validation, Validator } from './schema.js';

/** Reads the structured output in the text of an answer: the whole text, or the last JSON object in it if a model has put words or a fence around it. Emits one verdict and completes. */
export const readOutput$ = (output: Validator, text: string): Observable<Validation> => {
  const reading = readValue(text);
  return 'problem' in reading
    ? of({ valid: false, problems: [reading.problem] })
    : defer(() => output.validation$(reading.value)).pipe(
        failAs('unknown', "The schema of 'output' failed"),
      );
};

const readValue = (text: string): JsonReading => {
  const whole = readStrictly(text.trim());
  if (whole !== undefined) return whole;
  const found = objectsIn(text);
  const last = found.at(-1);
  if (last === undefined) return { problem: 'it holds no JSON object' };
  const strict = found
    .map((each) => readStrictly(each.text))
    .findLast((each) => each !== undefined);
  if (last.isWhole && strict !== undefined) return strict;
  const repaired = readJson(last.text);
  return 'problem' in repaired
    ? { problem: `its outermost JSON object cannot be read: ${repaired.problem}` }
    : repaired;
};

interface Found {
  readonly text: string;
  /** The last bracket is there. */
  readonly isWhole: boolean;
}

const begin = /\{(?=\s*(?:["'“‘}]|[\p{L}_$][\p{L}\p{N}_$]*\s*:|\/[/*]))|\[(?=\s*\{)/gu;

/** The outermost objects of a text. It never looks inside one, even if that one does not parse: what stands in it is a part of an answer. */
const objectsIn = (text: string): readonly Found[] => {
  const found: Found[] = [];
  let end = 0;
  for (const { index } of text.matchAll(begin)) {
    if (index < end) continue;
    const closing = endOf(text, index);
    end = closing ?? text.length;
    found.push({ text: text.slice(index, end), isWhole: closing !== undefined });
  }
  return found;
};

const endOf = (text: string, from: number): number | undefined => {
  let depth = 0;
  let inString = false;
  for (let at = from; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '\\' && inString) at += 1;
    else if (character === '"') inString = !inString;
    else if (!inString && '{['.includes(character)) depth += 1;
    else if (!inString && '}]'.includes(character)) depth -= 1;
    if (depth === 0) return at + 1;
  }
  return undefined;
};
