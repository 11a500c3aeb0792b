import { type Fields, fieldsOf, isFields, listOf, optional, textOf } from './fields.js';
import type { Source, ToolPart, UiMessage, UiPart } from './ui-message.js';

/** Reads the messages of a conversation from the server's history. */
export const messagesOf = (value: unknown): readonly UiMessage[] =>
  listOf(value).map((it) => {
    const { id, role, parts } = fieldsOf(it);
    return {
      id: textOf(id),
      role: role === 'user' ? 'user' : 'assistant',
      parts: listOf(parts).map((part) => partOf(fieldsOf(part))),
    };
  });

const partOf = (part: Fields): UiPart => {
  const type = textOf(part['type']);
  switch (type) {
    case 'text':
    case 'reasoning':
      return { type, text: textOf(part['text']), isOpen: false };
    case 'step-start':
      return { type };
    case 'file':
      return {
        type,
        url: textOf(part['url']),
        mediaType: textOf(part['mediaType']),
        ...optional('filename', part['filename']),
      };
    default:
      return type.startsWith('tool-')
        ? toolOf(type.slice('tool-'.length), part)
        : dataPart(type.replace(/^data-/u, ''), part);
  }
};

/** The server's words for a tool call that a message has cancelled. */
export const cancelledText = 'The tool call was cancelled.';

/** The state of a tool call with this error. */
export const failureOf = (errorText: string): ToolPart['state'] =>
  errorText === cancelledText ? 'cancelled' : 'failed';

const stateOf = ({ state, errorText }: Fields): ToolPart['state'] => {
  switch (state) {
    case 'output-available':
      return 'done';
    case 'output-error':
      return failureOf(textOf(errorText));
    default:
      return 'running';
  }
};

const toolOf = (toolName: string, part: Fields): ToolPart => ({
  type: 'tool',
  toolCallId: textOf(part['toolCallId']),
  toolName,
  state: stateOf(part),
  input: part['input'],
  output: part['output'],
  ...optional('errorText', part['errorText']),
});

/** The part of a chunk or of a stored part that has data of this name. */
export const dataPart = (name: string, { id, data }: Fields): UiPart => {
  const fields = fieldsOf(data);
  const toolCallId = textOf(fields['toolCallId']);
  const toolName = textOf(fields['toolName']) || 'unknown';
  const schema = isFields(fields['inputSchema']) && { inputSchema: fields['inputSchema'] };
  switch (name) {
    case 'approval': {
      const { expiresAt } = fields;
      const until = typeof expiresAt === 'number' ? { expiresAt } : {};
      const token = optional('token', fields['token']);
      const status = textOf(fields['status']);
      const mayEdit = fields['mayEdit'] === true;
      const reason = optional('reason', fields['reason']);
      const asked = 'asked' in fields && { asked: fields['asked'] };
      return {
        type: 'approval',
        data: {
          ...{ toolCallId, toolName, status, mayEdit },
          ...{ ...token, ...until, ...schema, ...reason, ...asked },
        },
      };
    }
    case 'suspended': {
      const localId = textOf(fields['localId']);
      const { request } = fields;
      return { type: 'suspended', data: { toolCallId, toolName, localId, request } };
    }
    case 'uncertain': {
      const outcome = settledAs.find((it) => it === fields['outcome']);
      return {
        type: 'uncertain',
        data: { toolCallId, toolName, ...(outcome && { outcome }), ...schema },
      };
    }
    case 'steered':
      return { type: 'steered', text: textOf(fields['text']) };
    case 'sources':
      return { type: 'sources', sources: listOf(data).map(sourceOf) };
    case 'agent':
      return {
        type: 'agent',
        id: textOf(id),
        names: listOf(fields['agent']).map(textOf),
        status: textOf(fields['status']),
        progress: [],
        ...optional('toolCallId', fields['toolCallId']),
        ...optional('text', fields['text']),
      };
    default:
      return { type: 'data', name, data, ...optional('id', id) };
  }
};

const settledAs = ['again', 'happened', 'failed'] as const;

const sourceOf = (value: unknown): Source => {
  const { number, source, title } = fieldsOf(value);
  return {
    source: textOf(source),
    ...(typeof number === 'number' ? { number } : {}),
    ...optional('title', title),
  };
};
