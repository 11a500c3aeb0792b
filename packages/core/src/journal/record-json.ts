import { errorCodes, messageOf, MillraceError } from '../values/errors.js';
import type { AgentEvent, EventType } from '../events.js';
import { areContentBlocks, frozen, withPlainDetails } from '../values/message.js';
import { isRecord } from '../values/json.js';
import { eventPart, unwritable } from '../values/plain-json.js';
import type { ModelAnswer } from '../phases/ask.js';
import type { ToolDecision } from '../phases/authorize-tool-call.js';
import type { ToolCallResult } from '../phases/tool-call.js';
import type { Step, StepForm } from '../step.js';
import type { Reply } from '../values/reply.js';
import {
  hasFields,
  isArrayOf,
  isAssistantMessage,
  isBoolean,
  isNumeric,
  isOptional,
  isString,
  isToolCall,
  isToolResult,
  isUsage,
} from '../values/shape.js';
import type { StoredRecord } from './call-store-driver.js';

export const stepText = (id: string, value: unknown): string => {
  try {
    const text: unknown = JSON.stringify(value ?? null);
    if (typeof text === 'string') return text;
  } catch (cause) {
    throw new MillraceError('invalidState', `${notJson(id)}: ${messageOf(cause)}.`, { cause });
  }
  throw new MillraceError('invalidState', `${notJson(id)}.`);
};

const notJson = (id: string): string =>
  `The value of the step '${id}' cannot be converted to JSON, which resuming the call requires`;

export const eventText = (event: { readonly type: string }): string => {
  try {
    return JSON.stringify(event, eventPart);
  } catch {
    return JSON.stringify(withoutOwn(event), eventPart);
  }
};

const withoutOwn = (event: object): unknown => {
  const own: Readonly<Record<string, unknown>> = { ...event };
  return Object.fromEntries(
    Object.entries(own).map(([key, value]) => [key, canBeWritten(value) ? value : unwritable]),
  );
};

export const canBeWritten = (value: unknown): boolean => {
  try {
    JSON.stringify(value, eventPart);
    return true;
  } catch {
    return false;
  }
};

export const parsedText = (what: string, text: string): unknown => {
  try {
    // Also matches escaped spellings.
    return JSON.parse(text, mayPollute.test(text) ? withoutPrototype : undefined);
  } catch (cause) {
    throw new MillraceError('invalidState', `${what} is damaged: ${messageOf(cause)}`, { cause });
  }
};

const mayPollute = /__proto__|\\u005f/i;

function withoutPrototype(this: unknown, key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value;
}

const values = new WeakMap<StoredRecord, unknown>();

export const withValue = (record: StoredRecord, value: unknown): StoredRecord => {
  values.set(record, value);
  return record;
};

export const storedEvent = (callId: string, record: StoredRecord): AgentEvent => {
  const what = `The event ${record.seq} of the call '${callId}'`;
  const parsed = values.has(record) ? values.get(record) : parsedText(what, record.text);
  const event =
    isRecord(parsed) && isRecord(parsed['error'])
      ? { ...parsed, error: readError(parsed['error']) }
      : parsed;
  if (isEvent(event)) return frozen(event);
  throw new MillraceError('invalidState', `${what} is not an event.`);
};

export const isEnd = ({ type, callId }: AgentEvent, logOf: string): boolean =>
  (type === 'postCall' || type === 'error') && callId === logOf;

export const sessionChanges: ReadonlySet<EventType> = new Set([
  'messagesAppended',
  'messagesRemoved',
  'headMoved',
  'stateChanged',
]);

const isEvent = (value: unknown): value is AgentEvent =>
  isRecord(value) &&
  ['type', 'rootId', 'callId'].every((key) => typeof value[key] === 'string') &&
  ['iteration', 'seq', 'at'].every((key) => typeof value[key] === 'number') &&
  Array.isArray(value['agent']);

const readError = (written: Readonly<Record<string, unknown>>): MillraceError => {
  const { code, message, retryable, userMessage } = written;
  const known = errorCodes.find((it) => it === code) ?? 'unknown';
  return new MillraceError(known, String(message), {
    retryable: retryable === true,
    ...(typeof userMessage === 'string' && { userMessage }),
  });
};

/** A recorded value has the type of its step. Forms check it. */
// eslint-disable-next-line @typescript-eslint/consistent-type-assertions, @typescript-eslint/no-unnecessary-type-parameters
export const taken = <T>(written: unknown): T => written as T;

const modelForm: StepForm<ModelAnswer> = {
  isWritten: (written) =>
    hasFields(written, {
      status: (status) => status === 'answered' || status === 'interrupted' || status === 'vetoed',
      message: isAssistantMessage,
      usage: isUsage,
      instead: isOptional(isString),
      finish: isOptional(isString),
      stop: isOptional(isBoolean),
      again: isOptional(isString),
      model: isOptional(isString),
      isShown: isOptional(isBoolean),
      halt: isOptional(isRecord),
      malformed: isOptional(isRecord),
    }),
};

const decisionForm: StepForm<ToolDecision> = {
  write: ({ value: _, ...decision }) => decision,
  isWritten: (written) =>
    hasFields(written, {
      toolCall: isToolCall,
      answer: isOptional((answer) =>
        hasFields(answer, { content: areContentBlocks, isError: isBoolean }),
      ),
      failed: isBoolean,
      usage: isUsage,
    }),
};

const actedForm: StepForm<ToolCallResult> = {
  write: ({ extras, result, ...acted }) => ({
    ...acted,
    result: withPlainDetails(result),
    lostExtras: Object.keys(extras),
  }),
  isWritten: (written) =>
    hasFields(written, {
      index: isNumeric,
      toolCall: isToolCall,
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
  read: (written) => ({ ...taken<ToolCallResult>(written), extras: {} }),
  warning: (written) => {
    const names = isRecord(written) ? written['lostExtras'] : undefined;
    return Array.isArray(names) && names.length > 0
      ? `The extras ${names.join(', ')} of a tool are lost: a journal cannot store them.`
      : undefined;
  },
};

const replyForm: StepForm<Reply> = {
  isWritten: (written) =>
    isAssistantMessage(written) &&
    hasFields(written, {
      text: isString,
      reason: isString,
      finish: isString,
      iterations: isNumeric,
      toolCalls: isArrayOf(isRecord),
      suspensions: isOptional(isArrayOf(isRecord)),
      usage: isUsage,
      usageByPhase: isRecord,
      createdAt: isNumeric,
      elapsedMs: isNumeric,
    }),
};

const forms: Readonly<Record<string, unknown>> = {
  model: modelForm,
  intent: decisionForm,
  tool: actedForm,
  reply: replyForm,
};

/** How the value of a step is written and read, by its kind. */
export const formOf = <T>({ kind, form }: Pick<Step<T>, 'kind' | 'form'>): Partial<StepForm<T>> =>
  // The kind of a step says what its value is.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  form ?? ((Object.hasOwn(forms, kind) ? forms[kind] : {}) as Partial<StepForm<T>>);
