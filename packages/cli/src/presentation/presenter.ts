import type { AgentEvent } from '@millrace/core';
import type { OperatorFunction } from 'rxjs';
import type { PrintArguments } from '../command-line/arguments.js';
import { answerOnly } from './answer-only.js';
import type { UsageUnit } from './describe-reply.js';
import { present } from './present.js';
import type { Theme } from './theme.js';
import { toJsonLines } from './to-json-lines.js';

export const presenterOf = (
  { json, quiet }: PrintArguments,
  theme: Theme,
  unit: UsageUnit,
): OperatorFunction<AgentEvent, string> => {
  if (json) return toJsonLines;
  return quiet ? answerOnly : present({ theme, unit });
};

/** Whether the output is for humans, with hints and notes. */
export const isHumanOutput = ({ json, quiet }: PrintArguments): boolean => !json && !quiet;
