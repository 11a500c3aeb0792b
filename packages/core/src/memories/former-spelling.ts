import { isRecord } from '../values/json.js';
import type { Message } from '../values/message.js';
import { isMessage } from '../values/shape.js';

/** Fields that hold messages, blocks and tool calls. Others may hold data of tools and programs, which is not read. */
const containers = new Set(
  `approvals content finalAnswer history input late message messages parts reply result
  suspensions toolUse toolUses`.split(/\s+/),
);

const maxDepth = 12;

/**
 * Reads stored messages, steps, events and states in the present spelling: version 0.1 called tool calls tool uses.
 * Returns the same value if there is nothing to change.
 */
export const respelled = (value: unknown, depth = 0): unknown => {
  if (depth > maxDepth) return value;
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value.map((item) => respelled(item, depth + 1));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isRecord(value)) return value;
  const { type, name: of } = value;
  if (type === 'tool_call') return value;
  if (type === 'tool_use') return { ...value, type: 'tool_call' };
  const fields = Object.entries(value);
  const entries = fields.map(([key, field]) => {
    const isPending = type === 'stateChanged' && of === 'approvals' && key === 'state';
    const name = nameOf(key, field, value);
    return isPending || containers.has(key) ? [name, respelled(field, depth + 1)] : [name, field];
  });
  const isSame = fields.every(
    ([key, field], index) => entries[index]?.[0] === key && entries[index][1] === field,
  );
  return isSame ? value : Object.fromEntries(entries);
};

const nameOf = (key: string, field: unknown, owner: Readonly<Record<string, unknown>>): string => {
  switch (key) {
    case 'toolUse':
      return isRecord(field) && typeof field['id'] === 'string' ? 'toolCall' : key;
    case 'toolUses':
      return Array.isArray(field) && isRecord(owner['usage']) ? 'toolCalls' : key;
    case 'toolUseId':
      return owner['type'] === 'tool_result' ||
        owner['type'] === 'vetoed' ||
        typeof owner['output'] === 'string'
        ? 'toolCallId'
        : key;
    default:
      return key;
  }
};

/** As `respelled`, for messages that a memory emits. What is no message stays as it is. */
export const respelledMessages = (messages: readonly Message[]): readonly Message[] => {
  // Memories are foreign code.
  const isList: boolean = Array.isArray(messages);
  const read = isList ? messages.map((message) => respelled(message)) : [];
  return isList && read.every(isMessage) ? read : messages;
};
