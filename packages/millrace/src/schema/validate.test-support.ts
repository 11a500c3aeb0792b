import { afterAll, expect } from '@jest/globals';
import { firstValueFrom, type Observable } from 'rxjs';
import { isRecord } from '../values/json.js';
import {
  type HiddenInput,
  type Validation,
  type Validator,
  validatorOf,
} from '../values/schema.js';
import { jsonSchema } from './index.js';

/** What comes of an input, at once. */
export interface Verdict {
  readonly valid: boolean;
  readonly value?: unknown;
  readonly input?: unknown;
  readonly problems: readonly string[];
}

type Options = Parameters<typeof jsonSchema>[1] & { readonly hidden?: HiddenInput };

/** What the validator of a schema says of an input. After all tests of the file, the validator of platforms that compile no code is asked the same. */
export const verdictOn = (schema: unknown, input: unknown, options: Options = {}): Verdict => {
  const verdicts: Verdict[] = [];
  validationOf(schema, input, options).subscribe({
    next: (validation) => verdicts.push({ problems: [], ...validation }),
    error: (error: unknown) => {
      throw error;
    },
  });
  const [verdict] = verdicts;
  if (verdict === undefined) throw new Error('There was no verdict.');
  asked.push([schema, input, options]);
  return verdict;
};

/** What the validator says of an input, and what that of a platform that compiles no code does. */
export const bothVerdictsOn = async (
  schema: unknown,
  input: unknown,
  options: Options = {},
): Promise<readonly Validation[]> => {
  const validation$ = () => validationOf(schema, input, options);
  return [await firstValueFrom(validation$()), await firstValueFrom(withoutCode(validation$))];
};

/** Makes something as if the platform compiled no code, as Workers and pages with a strict policy. */
export const withoutCode = <T>(make: () => T): T => {
  const compiler = globalThis.Function;
  const refuse = function () {
    throw new EvalError('Code generation from strings disallowed for this context');
  };
  Reflect.set(globalThis, 'Function', refuse);
  try {
    return make();
  } finally {
    Reflect.set(globalThis, 'Function', compiler);
  }
};

const validationOf = (
  schema: unknown,
  input: unknown,
  { hidden, ...options }: Options,
): Observable<Validation> => validatorFor(schema, options).validation$(input, hidden);

/** The validator of a Standard Schema, or of a JSON Schema with options. */
export const validatorFor = (
  schema: unknown,
  options: Parameters<typeof jsonSchema>[1] = {},
): Validator =>
  isRecord(schema) && !('~standard' in schema)
    ? jsonSchema(schema, options)
    : validatorOf(schema, 'The schema');

const asked: (readonly [schema: unknown, input: unknown, options: Options])[] = [];

afterAll(async () => {
  for (const [schema, input, options] of asked) {
    if (isRecord(schema) && !('~standard' in schema) && isShortJson(options.hidden)) {
      const [one, other] = await bothVerdictsOn(schema, input, options);
      expect({ schema, input, ...other }).toEqual({ schema, input, ...one });
    }
  }
});

const isShortJson = (value: unknown): boolean => {
  try {
    return JSON.stringify([value]).length < 1_000;
  } catch {
    return false;
  }
};
