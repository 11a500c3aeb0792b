import {
  areBlocks,
  areContentBlocks,
  type AssistantMessage,
  type Message,
  textBlock,
  type ToolMessage,
  type ToolResultBlock,
  type UserMessage,
} from '../values/message.js';
import { isRecord } from '../values/json.js';

/** A message of a caller. The call assigns its id. */
export type InputMessage =
  Message | Omit<UserMessage, 'id'> | Omit<AssistantMessage, 'id'> | Omit<ToolMessage, 'id'>;

/** A message of a caller whose content may be a string. */
export type GivenMessage =
  | InputMessage
  | { readonly role: 'user' | 'assistant'; readonly content: string; readonly name?: string };

/** Spells out a message whose content is a string. What is no message stays as it is. */
export function withBlocks(part: GivenMessage | string): InputMessage;
export function withBlocks(part: unknown): unknown;
export function withBlocks(part: unknown): unknown {
  if (typeof part === 'string') return { role: 'user', content: [textBlock(part)] };
  if (!isRecord(part) || typeof part['content'] !== 'string' || part['content'] === '') return part;
  return { ...part, content: [textBlock(part['content'])] };
}

export const isInputMessage = (value: unknown): value is Message =>
  isRecord(value) &&
  isRole(value['role']) &&
  Array.isArray(value['content']) &&
  value['content'].length > 0 &&
  blocksOf[value['role']](value['content']);

const blocksOf = {
  user: areContentBlocks,
  assistant: areBlocks,
  tool: (content: unknown): boolean => Array.isArray(content) && content.every(isResult),
};

const isRole = (role: unknown): role is keyof typeof blocksOf =>
  typeof role === 'string' && Object.hasOwn(blocksOf, role);

const isResult = (block: unknown): block is ToolResultBlock =>
  isRecord(block) &&
  block['type'] === 'tool_result' &&
  typeof block['toolCallId'] === 'string' &&
  typeof block['isError'] === 'boolean' &&
  areContentBlocks(block['content']);

/** Whether a message says nothing: a memory would not have it. Tool calls may be in a field of another API. */
export const isEmptyMessage = (part: unknown): boolean =>
  isRecord(part) &&
  (part['role'] === 'assistant' || part['role'] === 'user') &&
  !hasForeignCalls(part) &&
  hasNoContent(part['content']);

const hasNoContent = (content: unknown): boolean =>
  content === null ||
  content === undefined ||
  content === '' ||
  (Array.isArray(content) && content.length === 0);

const hasForeignCalls = (part: Readonly<Record<string, unknown>>): boolean =>
  foreignFields.some((field) => Array.isArray(part[field]) && part[field].length > 0);

/** Fields in which other APIs have tool calls. */
const foreignFields = ['tool_calls', 'toolInvocations', 'parts'];

export interface Fault {
  readonly why: string;
  readonly hint?: string;
}

/** The reason that a part of an input cannot be read. */
export const faultIn = (part: unknown): Fault | undefined => {
  if (isInputMessage(withBlocks(part))) return undefined;
  if (!isRecord(part) || !('role' in part)) {
    return { why: 'it is neither a string, a content block nor a message' };
  }
  const { role, content } = part;
  if (role === 'system' || role === 'developer') {
    return { why: `it has a message of the role '${role}'`, hint: ofSystem };
  }
  if (!isRole(role)) return { why: `the role is ${quoted(role)}, not user, assistant or tool` };
  const why = `the content ${faultOfContent(role, content)}`;
  const field = foreignFields.find((it) => Array.isArray(part[it]));
  if (field !== undefined) {
    const other = `${why}, and '${field}' is of another API`;
    return { why: other, hint: field === 'parts' ? ofParts : ofTools };
  }
  const isOfTools = role === 'tool' || (Array.isArray(content) && content.some(isForeignCall));
  return isOfTools ? { why, hint: ofTools } : { why };
};

const isForeignCall = (block: unknown): boolean =>
  isRecord(block) && typeof block['type'] === 'string' && block['type'].startsWith('tool');

const faultOfContent = (role: keyof typeof blocksOf, content: unknown): string => {
  if (content === null || content === undefined) return `is ${String(content)}`;
  if (hasNoContent(content)) return 'is empty';
  if (!Array.isArray(content)) return `is a ${typeof content}, not a list of blocks`;
  const at = content.findIndex((block) => !blocksOf[role]([block]));
  const block: unknown = content[at];
  const type = isRecord(block) && 'type' in block ? `, of the type ${quoted(block['type'])},` : '';
  return `has a block ${at + 1}${type} that is not valid for the role '${role}'`;
};

const quoted = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : `a ${typeof value}`;

const ofSystem = "Pass its text as the 'instructions' of the agent.";

const ofParts =
  "Messages of the AI SDK have 'parts': inputOfUiMessages(body) of @millrace/server reads the request of a chat. Otherwise, pass { role, content: [{ type: 'text', text: '…' }] }.";

const ofTools =
  "A tool call is a block { type: 'tool_call', id, name, input } of an assistant message. Its result is the next message: { role: 'tool', content: [{ type: 'tool_result', toolCallId, content: [{ type: 'text', text: '…' }], isError: false }] }.";
