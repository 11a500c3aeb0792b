import { isRecord } from '../values/json.js';
import type { Message } from '../values/message.js';
import { isMessage } from '../values/shape.js';

/** Fields that hold messages, blocks and tool calls. Others may hold data of tools and programs, which is not read. */
const containers =
  /^(?:approvals|content|finalAnswer|history|input|late|messages?|parts|reply|results?|suspensions|toolUses?)$/;

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
  const { type } = value;
  if (type === 'tool_call') return value;
  if (type === 'tool_use' || type === 'tool_result') return block(value);
  const fields = Object.entries(value);
  const entries = fields.map(([key, field]) => {
    const isRead = containers.test(key) || (key === 'state' && value['name'] === 'approvals');
    const name = isFormer(key, field, value) ? key.replace('toolUse', 'toolCall') : key;
    return [name, isRead ? respelled(field, depth + 1) : field];
  });
  const isSame = fields.every((field, index) =>
    field.every((it, at) => it === entries[index]?.[at]),
  );
  return isSame ? value : Object.fromEntries(entries);
};

const isFormer = (key: string, field: unknown, owner: object): boolean => {
  switch (key) {
    case 'toolUse':
      return isRecord(field) && 'id' in field;
    case 'toolUses':
      return Array.isArray(field) && 'usage' in owner;
    case 'toolUseId':
      return 'output' in owner || 'of' in owner;
    default:
      return false;
  }
};

const block = (value: unknown): unknown => {
  if (!isRecord(value)) return value;
  const { type, toolUseId, ...rest } = value;
  if (type === 'tool_use') return { ...rest, type: 'tool_call' };
  return type === 'tool_result' && toolUseId !== undefined
    ? { ...rest, type, toolCallId: toolUseId }
    : value;
};

const message = (value: unknown): unknown => {
  const content: unknown = isRecord(value) && value['content'];
  if (!isRecord(value) || !Array.isArray(content)) return value;
  const blocks: readonly unknown[] = content.map(block);
  return blocks.some((it, index) => it !== content[index]) ? { ...value, content: blocks } : value;
};

/** As `respelled`, for messages that a memory emits. What is no message stays as it is. */
export const respelledMessages = (messages: readonly Message[]): readonly Message[] => {
  // Memories are foreign code.
  const isList: boolean = Array.isArray(messages);
  const read = isList ? messages.map(message) : [];
  return isList && read.every(isMessage) ? read : messages;
};
