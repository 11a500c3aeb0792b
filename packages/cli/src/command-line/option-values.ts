import { InvalidArgumentError } from 'commander';

export const wholeNumber =
  (least: number) =>
  (text: string): number => {
    const value = Number(text);
    if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= least) return value;
    throw new InvalidArgumentError(`It must be a whole number of at least ${least}.`);
  };

export const fraction = (text: string): number => {
  const value = Number(text);
  if (/^\d*\.?\d+$/.test(text)) return value;
  throw new InvalidArgumentError('It must be a number of at least 0, such as 0.05.');
};

/** Parses the speed of a replay as a factor. */
export const toSpeed = (text: string): number => {
  if (text === 'max') return Infinity;
  const value = Number(text);
  if (/^\d*\.?\d+$/.test(text) && value > 0) return value;
  throw new InvalidArgumentError('It must be a number above 0, or "max".');
};

export const toPort = (text: string): number => {
  const port = wholeNumber(0)(text);
  if (port < 65_536) return port;
  throw new InvalidArgumentError('It must be a port, up to 65535.');
};

export const notBlank = (text: string): string => {
  if (text.trim() !== '') return text.trim();
  throw new InvalidArgumentError('It is empty.');
};

/** Parses one answer of a person, `component=text`, and adds it to the previous ones. */
export const toAnswers = (
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> => {
  const [, component, given] = /^([^=]+)=([^]*)$/.exec(text) ?? [];
  if (component !== undefined && given !== undefined) return { ...before, [component]: given };
  throw new InvalidArgumentError('It must be a component and the answer, as in approve=yes.');
};

/** Parses one edit, `step=text`, and adds it to the previous ones. */
export const toEdits = (
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> => {
  const [, step, given] = /^([^=]+)=([^]*)$/.exec(text) ?? [];
  if (step !== undefined && given !== undefined) return { ...before, [step]: given };
  throw new InvalidArgumentError('It must be a step and its result, as in "1/0=It is 42."');
};
