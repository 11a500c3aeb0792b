import type { Use } from './batch.js';

/** Failures of a tool in a row, the one of now among them. */
export const failuresInRow = (uses: readonly Use[], name: string): number => {
  const own = uses.filter(({ toolUse }) => toolUse.name === name);
  return own.length - own.findLastIndex(({ failed }) => !failed);
};

/** Tells a model that a tool has failed too often. */
export const tooManyFailures = (name: string, failures: number): string =>
  `The tool ${name} has failed ${failures} times in a row. Do not try it again: go on without it, or say what is missing.`;

/** Tells a model that it goes round in a circle. */
export const sameAgain = (name: string, repeats: number): string =>
  `You have asked for ${name} with the very same arguments ${repeats + 1} times in a row. Use the result that you have, or ask for something else.`;
