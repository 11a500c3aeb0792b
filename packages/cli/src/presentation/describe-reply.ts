import type { Reply } from 'millrace';
import type {} from 'millrace/traffic';
import { describeCost } from 'millrace/values';
import { milliseconds } from './milliseconds.js';
import { printableName } from './printable.js';
import type { Theme } from './theme.js';

/** The unit of a model's usage. */
export type UsageUnit = 'tokens' | 'words';

/** Summarizes a reply in one line: how it ended, its duration and its usage. */
export const describeReply = (
  { reason, elapsedMs, iterations, toolCalls, usage, cost }: Reply,
  unit: UsageUnit,
  { colors, unicode }: Theme,
): string => {
  const cached = usage.cacheReadTokens > 0 ? ` and ${usage.cacheReadTokens} cached` : '';
  const facts = [
    count(iterations, 'iteration'),
    count(toolCalls.length, 'tool call'),
    `${usage.inputTokens}${cached} ${unit} in, ${usage.outputTokens} out`,
    ...(cost === undefined ? [] : [printableName(describeCost(cost))]),
  ];
  const how = `${endings[reason] ?? `ended (${printableName(reason)}) after`} ${milliseconds(elapsedMs)}`;
  const rest = colors.dim(facts.map((fact) => ` ${unicode ? '·' : '-'} ${fact}`).join(''));
  return `${reason === 'answer' || reason === 'toolFinal' ? colors.green(how) : colors.yellow(how)}${rest}`;
};

const endings: Readonly<Partial<Record<string, string>>> = {
  answer: 'answered in',
  toolFinal: 'answered by a tool in',
  maxIterations: 'ended at the iteration limit after',
  budget: 'ended at the budget limit after',
  interrupted: 'interrupted after',
  suspended: 'suspended after',
  stopped: 'stopped after',
  truncated: 'truncated at the length limit after',
  refused: 'refused after',
};

const count = (number: number, what: string): string =>
  `${number} ${what}${number === 1 ? '' : 's'}`;
