import { isRecord } from '../values/json.js';

/** Names of version 0.1 in stored messages, steps and events, with their present spelling. */
const renamed = new Map([
  ['toolUse', 'toolCall'],
  ['toolUses', 'toolCalls'],
  ['toolUseId', 'toolCallId'],
  ['says', 'instead'],
  ['behind', 'afterSteps'],
]);

/** Fields with data of tools and programs, which may have any names. */
const foreign = new Set([
  'details',
  'inputSchema',
  'metadata',
  'output',
  'outputSchema',
  'patches',
  'request',
  'state',
  'value',
]);

/** Reads stored JSON in the present spelling. Returns the same value if there is nothing to change. */
export const respelled = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value.map(respelled);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isRecord(value)) return value;
  let hasChanged = false;
  const entries = Object.entries(value).map(([key, field]) => {
    const entry = [renamed.get(key) ?? key, fieldOf(key, field)] as const;
    hasChanged ||= entry[0] !== key || entry[1] !== field;
    return entry;
  });
  return hasChanged ? Object.fromEntries(entries) : value;
};

const fieldOf = (key: string, field: unknown): unknown => {
  if (key === 'type') return field === 'tool_use' ? 'tool_call' : field;
  // The `input` of a call is a list of messages, that of a tool call is the tool's.
  return foreign.has(key) || (key === 'input' && !Array.isArray(field)) ? field : respelled(field);
};
