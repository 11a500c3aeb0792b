import { InvalidArgumentError } from 'commander';

/** Reads a whole number of at least `least`. */
export const wholeNumber =
  (least: number) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value;
    throw new InvalidArgumentError(`It must be a whole number of at least ${least}.`);
  };

/** Reads how many times as fast as it was something is played. */
export const toSpeed = (text: string): number => {
  if (text === 'max') return Infinity;
  const value = Number(text);
  if (/^\d*\.?\d+$/.test(text) && value > 0) return value;
  throw new InvalidArgumentError('It must be a number above 0, or "max".');
};

/** Reads a text that is not blank. */
export const notBlank = (text: string): string => {
  if (text.trim() !== '') return text.trim();
  throw new InvalidArgumentError('It is empty.');
};

/** Reads one edit, `step=text`, and adds it to those before. */
export const toEdits = (
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> => {
  const [, step, given] = /^([^=]+)=([^]*)$/.exec(text) ?? [];
  if (step !== undefined && given !== undefined) return { ...before, [step]: given };
  throw new InvalidArgumentError('It must be a step and what it gave, as in "1/0=It is 42."');
};
