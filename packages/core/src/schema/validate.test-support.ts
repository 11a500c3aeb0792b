import { createValidator, type HiddenInput, type ValidatorOptions } from '../schema.js';

/** What comes of an input, at once. */
export interface Verdict {
  readonly valid: boolean;
  readonly value?: unknown;
  readonly input?: unknown;
  readonly problems: readonly string[];
}

/** What the validator of a schema says of an input. */
export const verdictOn = (
  schema: unknown,
  input: unknown,
  { hidden, ...options }: ValidatorOptions & { readonly hidden?: HiddenInput } = {},
): Verdict => {
  const verdicts: Verdict[] = [];
  createValidator(schema, 'The schema', options)
    .validation$(input, hidden)
    .subscribe({
      next: (validation) => verdicts.push({ problems: [], ...validation }),
      error: (error: unknown) => {
        throw error;
      },
    });
  const [verdict] = verdicts;
  if (verdict === undefined) throw new Error('There was no verdict.');
  return verdict;
};
