import {
  type ContentBlock,
  type MediaSource,
  textBlock,
  toolOutput,
  type ToolOutput,
} from '@millrace/core';
import type {
  CallToolResult,
  ContentBlock as McpBlock,
  EmbeddedResource,
  GetPromptResult,
  ReadResourceResult,
  ResourceLink,
} from '@modelcontextprotocol/client';
import { cleaned, lineOfJson } from './text.js';

/** The result of a tool. `structuredContent` becomes `details`, and the text if there is no other content. */
export const outputOf = (
  { content, structuredContent, isError = false }: CallToolResult,
  maxLength: number,
): ToolOutput => {
  const blocks = content.map(blockOf);
  const whole =
    blocks.length === 0 && structuredContent !== undefined
      ? [textBlock(lineOfJson(structuredContent)), ...noteOnRounding(structuredContent)]
      : blocks;
  const details = withinLength(structuredContent, maxLength);
  return toolOutput({
    content: withinBudget(whole, maxLength),
    isError,
    ...(details !== undefined && { details }),
  });
};

/** The client has parsed the JSON, so a larger integer may be another one than the server sent. */
const noteOnRounding = (value: unknown): readonly ContentBlock[] =>
  isRounded(value)
    ? [textBlock(`\n[Integers beyond ${Number.MAX_SAFE_INTEGER} may be rounded.]`)]
    : [];

const isRounded = (value: unknown): boolean =>
  typeof value === 'number'
    ? Number.isInteger(value) && !Number.isSafeInteger(value)
    : typeof value === 'object' && value !== null && Object.values(value).some(isRounded);

export const outputOfResource = ({ contents }: ReadResourceResult, maxLength: number): ToolOutput =>
  toolOutput({ content: withinBudget(contents.map(ofContents), maxLength) });

export const outputOfPrompt = (
  { description, messages }: GetPromptResult,
  maxLength: number,
): ToolOutput =>
  toolOutput({
    content: withinBudget(
      [
        ...(description === undefined ? [] : [textBlock(description)]),
        ...messages.flatMap(({ role, content }) => [textBlock(`[${role}]`), blockOf(content)]),
      ],
      maxLength,
    ),
  });

const blockOf = (block: McpBlock): ContentBlock => {
  switch (block.type) {
    case 'text':
      return textBlock(block.text);
    case 'image':
    case 'audio':
      return media(block.mimeType, block.data);
    case 'resource_link':
      return textBlock(linkTo(block));
    case 'resource':
      return ofContents(block.resource);
  }
};

const linkTo = ({ uri, name, description, mimeType }: ResourceLink): string =>
  [`Resource: ${name} <${uri}>`, mimeType, description].filter(Boolean).join('\n');

const ofContents = (resource: EmbeddedResource['resource']): ContentBlock =>
  'text' in resource
    ? textBlock(`<${resource.uri}>\n${resource.text}`)
    : media(resource.mimeType, resource.blob, resource.uri);

/** Images and audio by their media type; other bytes are a file. */
const media = (
  mediaType = 'application/octet-stream',
  data: string,
  name?: string,
): ContentBlock => {
  const source: MediaSource = { kind: 'base64', mediaType, data };
  if (mediaType.startsWith('image/')) return { type: 'image', source };
  if (mediaType.startsWith('audio/')) return { type: 'audio', source };
  return { type: 'file', source, ...(name !== undefined && { name }) };
};

/** The first blocks up to a number of characters. Text is cut; a medium that does not fit is named. */
const withinBudget = (
  blocks: readonly ContentBlock[],
  maxLength: number,
): readonly ContentBlock[] => {
  let room = maxLength;
  const kept = blocks.map((block): ContentBlock | undefined => {
    if (room <= 0) return undefined;
    if (block.type === 'text') {
      const text = cleaned(block.text, room);
      room -= text.length;
      return textBlock(text);
    }
    const length = block.source.kind === 'base64' ? block.source.data.length : 0;
    if (length > room)
      return textBlock(`[${block.type} of ${length} characters omitted: too long]`);
    room -= length;
    return block;
  });
  const shown = kept.filter((block) => block !== undefined);
  const omitted = blocks.length - shown.length;
  return omitted === 0
    ? shown
    : [...shown, textBlock(`[${omitted} more blocks omitted: too long]`)];
};

const withinLength = (value: unknown, maxLength: number): unknown =>
  value !== undefined && JSON.stringify(value).length <= maxLength ? value : undefined;
