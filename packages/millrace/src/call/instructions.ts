import { cell } from '../step.js';
import { misuse } from '../values/errors.js';
import type { CallInfo } from '../values/reply.js';

type InstructionsPart = string | ((call: CallInfo) => string);

/** A system prompt: a string, a function that returns it for a call, or a list of both. */
export type Instructions = InstructionsPart | readonly InstructionsPart[];

export const instructionsOf = cell('call', (): { own?: Instructions | undefined } => ({}));

/** The system prompt of a call. */
export const resolved = (
  instructions: Instructions | undefined,
  call: CallInfo,
): string | undefined =>
  instructions === undefined
    ? undefined
    : joinedParts(
        partsOf(instructions).map((it) => (typeof it === 'function' ? checkedText(it(call)) : it)),
      );

const checkedText = (text: unknown): string => {
  if (typeof text === 'string') return text;
  const isAsync = typeof text === 'object' && text !== null && 'then' in text;
  throw misuse(
    isAsync
      ? "A function in 'instructions' must return a string, not a Promise. Load the text in a layer: call: () => (next) => (call) => from(load()).pipe(mergeMap((instructions) => next({ ...call, instructions })))."
      : `A function in 'instructions' must return a string, not ${text === null ? 'null' : typeof text}.`,
  );
};

const partsOf = (instructions: Instructions): readonly InstructionsPart[] =>
  typeof instructions === 'string' || typeof instructions === 'function'
    ? [instructions]
    : instructions;

const joinedParts = (parts: readonly string[]): string =>
  parts.filter((part) => part !== '').join('\n\n');

/** The length of the start of a system prompt that is the same in every call, if the rest is not. */
export const fixedLength = (
  instructions: Instructions | undefined = '',
  system = '',
): number | undefined => {
  const parts = partsOf(instructions);
  const end = parts.findIndex((part) => typeof part === 'function');
  const fixed = joinedParts(
    parts.slice(0, end === -1 ? parts.length : end).filter((part) => typeof part === 'string'),
  );
  return fixed !== '' && system.startsWith(`${fixed}\n\n`) ? fixed.length : undefined;
};
