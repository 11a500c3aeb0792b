import { textBlock } from '../message.js';
import type { ToolRun } from '../reply.js';
import type { ToolOutput } from '../tool-output.js';

/** Failures of a tool in a row, the one of now among them. */
export const failuresInRow = (toolRuns: readonly ToolRun[], name: string): number => {
  const own = toolRuns.filter((run) => run.name === name);
  return own.length - own.findLastIndex(({ isError }) => !isError);
};

/** Tells a model that a tool has failed too often. */
export const tooManyFailures = (name: string, failures: number): string =>
  `The tool ${name} has failed ${failures} times in a row. Do not try it again: go on without it, or say what is missing.`;

/** Tells a model that it goes round in a circle. */
export const sameAgain = (name: string, repeats: number): string =>
  `You have asked for ${name} with the very same arguments ${repeats + 1} times in a row. Use the result that you have, or ask for something else.`;

/** Puts words before what a tool gave: what stands behind it may be cut off. */
export const noted = (output: ToolOutput, notes: readonly string[]): ToolOutput =>
  notes.length === 0
    ? output
    : { ...output, content: [textBlock(`${notes.join('\n')}\n`), ...output.content] };
