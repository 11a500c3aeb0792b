import { type ContentBlock, textBlock, toolOutput, type ToolOutput } from 'millrace';
import { isRecord } from 'millrace/values';
import { at, type JsonRecord, textAt } from '@millrace/wire';

/** Converts the result of a `toModelOutput` of the AI SDK to the output of a tool. `details` is the return value of the tool itself. */
export const toToolOutput = (output: unknown, details: unknown): ToolOutput => {
  const fields: JsonRecord = isRecord(output) ? output : { type: 'json', value: output };
  const { type, value, reason } = fields;
  const isError =
    type === 'error-text' ||
    type === 'error-json' ||
    type === 'execution-denied' ||
    // MCP: the AI SDK does not pass it on.
    at(details, 'isError') === true;
  return toolOutput({
    content: contentOf(type, value, reason),
    isError,
    ...(details === undefined ? {} : { details }),
  });
};

const contentOf = (type: unknown, value: unknown, reason: unknown): readonly ContentBlock[] => {
  switch (type) {
    case 'text':
    case 'error-text':
      return [textBlock(typeof value === 'string' ? value : JSON.stringify(value))];
    case 'content':
      return Array.isArray(value) ? value.filter(isRecord).map(toBlock) : [];
    case 'execution-denied':
      return [textBlock(typeof reason === 'string' ? reason : 'The tool was not run.')];
    default:
      return [textBlock(value === undefined ? '(no output)' : JSON.stringify(value))];
  }
};

/** A part of the forms of both versions of the interface: by kind and source, or tagged. */
const toBlock = (part: JsonRecord): ContentBlock => {
  const { type } = part;
  if (type === 'text') return textBlock(textAt(part, 'text'));
  const mediaType =
    textAt(part, 'mediaType') || (String(type).startsWith('image') ? 'image/png' : '');
  const data = textAt(part, 'data') || textAt(part, 'data', 'data');
  const address = at(part, 'data', 'url');
  const url = textAt(part, 'url') || (address instanceof URL ? address.href : '');
  const kind = kindOf(mediaType, String(type));
  if (data !== '' && mediaType !== '') {
    return { type: kind, source: { kind: 'base64', mediaType, data } };
  }
  if (URL.canParse(url)) return { type: kind, source: { kind: 'url', url } };
  // Nothing is lost: the model reads what is left.
  return textBlock(textAt(part, 'data', 'text') || JSON.stringify(part));
};

const kindOf = (mediaType: string, type: string): 'image' | 'audio' | 'file' => {
  if (mediaType.startsWith('image/') || type.startsWith('image')) return 'image';
  return mediaType.startsWith('audio/') ? 'audio' : 'file';
};
