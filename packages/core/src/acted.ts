import type { Decision } from './decide-tool.js';
import type { StepForm } from './journal/step.js';
import { isRecord } from './json.js';
import type { ContentBlock, ToolResultBlock, ToolUseBlock } from './message.js';
import { areContentBlocks } from './message.js';
import { withPlainDetails } from './plain-details.js';
import {
  hasFields,
  isArrayOf,
  isBoolean,
  isNumeric,
  isOptional,
  isString,
  isToolResult,
  isToolUse,
  isUsage,
} from './shape.js';
import type { Extras } from './tools/extras.js';
import type { Usage } from './usage.js';

/** One tool use, answered. */
export interface Acted {
  /** Its place in the message that asked for it. */
  readonly index: number;
  /** As it was run, with the edits of interceptors. */
  readonly toolUse: ToolUseBlock;
  readonly result: ToolResultBlock;
  readonly ms: number;
  /** Whether the tool was asked at all. */
  readonly executed: boolean;
  /** It failed, or could not begin for what the model said. */
  readonly failed: boolean;
  /** What the tool passes on to others, past the model. */
  readonly extras: Extras;
  /** All that the tool gave, where it is the answer. */
  readonly finalAnswer: readonly ContentBlock[] | undefined;
  readonly stop: boolean;
  /** The groups of tools that were active behind it, where it has changed that. */
  readonly groups?: readonly string[];
  /** What the calls have cost that the tool has made, at any depth. */
  readonly usage: Usage;
}

/** What the input was made into is no JSON: it is made again. */
export const decisionForm: StepForm<Decision> = {
  write: ({ value: _, ...decision }) => decision,
  isWritten: (written) =>
    hasFields(written, {
      toolUse: isToolUse,
      answer: isOptional((answer) =>
        hasFields(answer, { content: areContentBlocks, isError: isBoolean }),
      ),
      failed: isBoolean,
      usage: isUsage,
    }),
};

/** Extras are no JSON: their names are. */
export const actedForm: StepForm<Acted> = {
  write: ({ extras, result, ...acted }) => ({
    ...acted,
    result: withPlainDetails(result),
    lostExtras: Object.keys(extras),
  }),
  isWritten: (written) =>
    hasFields(written, {
      index: isNumeric,
      toolUse: isToolUse,
      result: isToolResult,
      ms: isNumeric,
      executed: isBoolean,
      failed: isBoolean,
      finalAnswer: isOptional(areContentBlocks),
      stop: isBoolean,
      groups: isOptional(isArrayOf(isString)),
      usage: isUsage,
      lostExtras: isArrayOf(isString),
    }),
  read: (written) => ({ ...asActed(written), extras: {} }),
  warning: (written) => {
    const names = isRecord(written) ? written['lostExtras'] : undefined;
    return Array.isArray(names) && names.length > 0
      ? `A tool had passed on ${names.join(', ')} past the model, which a journal cannot hold: the tools that take it go without.`
      : undefined;
  },
};

/** Checked before it is read. */
// eslint-disable-next-line @typescript-eslint/consistent-type-assertions
const asActed = (written: unknown): Acted => written as Acted;
