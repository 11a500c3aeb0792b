import { type AgentEvent, only, textOf } from 'millrace';
import { filter, map, type OperatorFunction } from 'rxjs';
import type { PrintArguments } from '../command-line/arguments.js';
import type { UsageUnit } from './describe-reply.js';
import { present } from './present.js';
import { printable } from './printable.js';
import type { Theme } from './theme.js';
import { toJsonLines } from './to-json-lines.js';
import { wrapLines } from './wrap.js';

export const presenterOf = (
  { json, quiet }: PrintArguments,
  theme: Theme,
  unit: UsageUnit,
): OperatorFunction<AgentEvent, string> => {
  if (json) return toJsonLines;
  const presented = quiet ? answerOnly : present({ theme, unit });
  return theme.isTerminal === true
    ? (event$) => event$.pipe(presented, wrapLines(theme.width))
    : presented;
};

/** Whether the output is for humans, with hints and notes. */
export const isHumanOutput = ({ json, quiet }: PrintArguments): boolean => !json && !quiet;

/** Emits only the answer of a call, when it is complete. */
export const answerOnly: OperatorFunction<AgentEvent, string> = (event$) =>
  event$.pipe(
    only('postCall'),
    filter(({ parentId }) => parentId === undefined),
    map(({ reply }) => `${printable(textOf(reply)).trimEnd()}\n`),
  );
