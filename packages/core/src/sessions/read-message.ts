import {
  type AssistantBlock,
  type ContentBlock,
  isContentBlock,
  type Message,
  plainBlock,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../message.js';
import { isRecord, isTooDeep } from '../json.js';
import { jsonCopy } from './json-copy.js';
import {
  distinct,
  fieldsOf,
  flag,
  listOf,
  name,
  type Place,
  type Read,
  text,
  wrong,
} from './read-fields.js';
import { json, jsonObject } from './read-json.js';

/** Blocks that a message may have. */
const mostBlocks = 10_000;

/** Reads a message of whatever role. */
export const message: Read<Message> = (value, place) => {
  const role = ownField(value, 'role');
  switch (role) {
    case 'user': {
      const fields = fieldsOf(value, place, ['id', 'role', 'content', 'name']);
      return {
        id: fields.read('id', name),
        role,
        content: fields.read('content', listOf(contentBlock, mostBlocks)),
        ...(fields.has('name') && { name: fields.read('name', name) }),
      };
    }
    case 'assistant': {
      const fields = fieldsOf(value, place, ['id', 'role', 'content', 'name']);
      return {
        id: fields.read('id', name),
        role,
        content: fields.read('content', assistantBlocks),
        ...(fields.has('name') && { name: fields.read('name', name) }),
      };
    }
    case 'tool': {
      const fields = fieldsOf(value, place, ['id', 'role', 'content']);
      return {
        id: fields.read('id', name),
        role,
        content: fields.read('content', listOf(toolResult, mostBlocks)),
      };
    }
    default:
      throw wrong(place, "is no message: its 'role' must be 'user', 'assistant' or 'tool'");
  }
};

/** Reads what asks for one run of a tool. */
export const toolUse: Read<ToolUseBlock> = (value, place) => {
  const known = ['type', 'id', 'name', 'input', 'invalidInput', 'refusal'];
  const fields = fieldsOf(value, place, known);
  if (ownField(value, 'type') !== 'tool_use') throw wrong(place, "must be of the type 'tool_use'");
  return {
    type: 'tool_use',
    id: fields.read('id', name),
    // A model may have asked for a tool without a name.
    name: fields.read('name', text),
    input: fields.read('input', jsonObject),
    ...(fields.has('invalidInput') && { invalidInput: fields.read('invalidInput', text) }),
    ...(fields.has('refusal') && { refusal: fields.read('refusal', text) }),
  };
};

const toolResult: Read<ToolResultBlock> = (value, place) => {
  const known = ['type', 'toolUseId', 'content', 'isError', 'note', 'details', 'suspended'];
  const fields = fieldsOf(value, place, known);
  if (ownField(value, 'type') !== 'tool_result') {
    throw wrong(place, "must be of the type 'tool_result'");
  }
  const details = fields.has('details') ? fields.read('details', detailsOf) : undefined;
  return {
    type: 'tool_result',
    toolUseId: fields.read('toolUseId', name),
    content: fields.read('content', listOf(contentBlock, mostBlocks)),
    isError: fields.read('isError', flag),
    ...(fields.has('note') && { note: fields.read('note', text) }),
    ...(details !== undefined && { details }),
    ...(fields.has('suspended') && { suspended: fields.read('suspended', suspended) }),
  };
};

/** They are the tool's own, and may be whatever it likes. */
const detailsOf: Read<unknown> = (value, place) => {
  if (place.isForeign) return json(value, place);
  try {
    return isTooDeep(value) ? undefined : jsonCopy(value);
  } catch {
    return undefined;
  }
};

const suspended: Read<ToolResultBlock['suspended'] & object> = (value, place) => {
  const fields = fieldsOf(value, place, ['request']);
  return { request: fields.has('request') ? fields.read('request', json) : null };
};

const assistantBlocks: Read<readonly AssistantBlock[]> = (value, place) => {
  const blocks = listOf(assistantBlock, mostBlocks)(value, place);
  const uses = blocks.filter((block) => block.type === 'tool_use');
  distinct(uses, ({ id }) => id, place);
  return blocks;
};

const assistantBlock: Read<AssistantBlock> = (value, place) => {
  switch (ownField(value, 'type')) {
    case 'tool_use':
      return toolUse(value, place);
    case 'thinking': {
      const fields = fieldsOf(value, place, ['type', 'text', 'signature', 'redacted']);
      return {
        type: 'thinking',
        text: fields.read('text', text),
        ...(fields.has('signature') && { signature: fields.read('signature', text) }),
        ...(fields.has('redacted') && { redacted: fields.read('redacted', flag) }),
      };
    }
    default:
      return contentBlock(value, place);
  }
};

const contentBlock: Read<ContentBlock> = (value, place) => {
  if (!isContentBlock(value)) throw wrong(place, 'is no block of text, image, audio or file');
  const plain = plainBlock(value);
  fieldsOf(value, place, Object.keys(plain));
  if (plain.type !== 'text') {
    const at: Place = { ...place, path: `${place.path}.source` };
    fieldsOf(ownField(value, 'source'), at, Object.keys(plain.source));
  }
  return plain;
};

const ownField = (value: unknown, field: string): unknown =>
  isRecord(value) && Object.hasOwn(value, field) ? value[field] : undefined;
