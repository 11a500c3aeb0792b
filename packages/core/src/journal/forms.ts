import type { Acted } from '../act.js';
import type { Asked } from '../ask.js';
import type { Decision } from '../decide-tool.js';
import { isRecord } from '../json.js';
import type { Step, StepForm } from '../step.js';
import { areContentBlocks } from '../message.js';
import { withPlainDetails } from '../plain-details.js';
import { endReasons, type Reply } from '../reply.js';
import {
  hasFields,
  isArrayOf,
  isAssistantMessage,
  isBoolean,
  isNumeric,
  isOptional,
  isString,
  isToolResult,
  isToolUse,
  isUsage,
} from '../shape.js';

/** A message of the model: plain JSON. */
const askedForm: StepForm<Asked> = {
  isWritten: (written) =>
    hasFields(written, {
      status: (status) => status === 'answered' || status === 'interrupted' || status === 'vetoed',
      message: isAssistantMessage,
      usage: isUsage,
      finish: isOptional(isString),
      stop: isOptional(isBoolean),
      again: isOptional(isString),
      model: isOptional(isString),
      isShown: isOptional(isBoolean),
      halt: isOptional(isRecord),
      malformed: isOptional(isRecord),
    }),
};

/** What the input was made into is no JSON: it is made again. */
const decisionForm: StepForm<Decision> = {
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
const actedForm: StepForm<Acted> = {
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
      below: isOptional(isRecord),
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

/** What an `output` was made into is told as JSON holds it, where the reply comes from the journal. */
export const replyForm: StepForm<Reply> = {
  isWritten: (written) =>
    isAssistantMessage(written) &&
    hasFields(written, {
      reason: (reason) => endReasons.some((known) => known === reason),
      finish: isString,
      iterations: isNumeric,
      toolUses: isArrayOf(isRecord),
      suspensions: isOptional(isArrayOf(isRecord)),
      usage: isUsage,
      usageByPhase: isRecord,
      createdAt: isNumeric,
      elapsedMs: isNumeric,
    }),
};

/** The steps of the loop, by kind. Other kinds bring their own forms. */
const forms: Readonly<Record<string, unknown>> = {
  model: askedForm,
  intent: decisionForm,
  tool: actedForm,
  reply: replyForm,
};

/** How the value of a step is recorded. Without a form, whatever was recorded is taken for it. */
export const formOf = <T>({ kind, form }: Pick<Step<T>, 'kind' | 'form'>): Partial<StepForm<T>> =>
  // The kind of a step says what its value is.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  form ?? ((Object.hasOwn(forms, kind) ? forms[kind] : {}) as Partial<StepForm<T>>);
