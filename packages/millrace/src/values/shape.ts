import { isRecord } from './json.js';
import { areBlocks, areContentBlocks, type Message, type ToolResultBlock } from './message.js';
import type { Usage } from './usage.js';

export type Check = (value: unknown) => boolean;

/** Whether a value is an object whose listed fields pass their checks; it may have others. */
export const hasFields = (value: unknown, fields: Readonly<Record<string, Check>>): boolean =>
  isRecord(value) &&
  Object.entries(fields).every(([name, check]) =>
    check(Object.hasOwn(value, name) ? value[name] : undefined),
  );

export const isString: Check = (value) => typeof value === 'string';
export const isNumeric: Check = (value) => typeof value === 'number';
export const isBoolean: Check = (value) => typeof value === 'boolean';

export const isOne =
  (of: string): Check =>
  (value) =>
    value === of;

export const isOptional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);

export const isArrayOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);

export const isUsage = (value: unknown): value is Usage =>
  hasFields(value, {
    inputTokens: isNumeric,
    outputTokens: isNumeric,
    cacheReadTokens: isNumeric,
    cacheWriteTokens: isNumeric,
  } satisfies Readonly<Record<keyof Usage, Check>>);

export const isToolCall: Check = (value) =>
  hasFields(value, { id: isString, name: isString, input: isRecord });

const isBelow: Check = (value) =>
  hasFields(value, { rootId: isString, waiting: isArrayOf(isWaiting), steps: isRecord });

const isWaiting: Check = (value) => hasFields(value, { toolCall: isToolCall });

export const isToolResult = (value: unknown): value is ToolResultBlock =>
  hasFields(value, {
    toolCallId: isString,
    content: areContentBlocks,
    isError: isBoolean,
    cancelled: isOptional(isArrayOf(isString)),
    suspended: isOptional((later) => hasFields(later, { below: isOptional(isBelow) })),
  });

export const isAssistantMessage: Check = (value) =>
  hasFields(value, { id: isString, role: (role) => role === 'assistant', content: areBlocks });

/** Whether a value from outside has the shape of a message. */
export const isMessage = (value: unknown): value is Message =>
  isRecord(value) &&
  typeof value['id'] === 'string' &&
  ['user', 'assistant', 'tool'].some((role) => role === value['role']) &&
  areBlocks(value['content']);
