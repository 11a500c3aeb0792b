import { type ContentBlock, textBlock } from 'millrace';
import type { ContentBlock as McpBlock } from '@modelcontextprotocol/server';

/** The first blocks up to a number of characters, media included, and a note on what is left out. */
export const bounded = (
  content: readonly ContentBlock[],
  most: number,
): readonly ContentBlock[] => {
  const total = lengthOfAll(content);
  let room = most;
  const at = content.findIndex((block) => {
    room -= lengthOf(block);
    return room < 0;
  });
  const cut = content[at];
  if (cut === undefined) return content;
  const head = cut.type === 'text' ? cut.text.slice(0, room) : '';
  const shownLength = total - lengthOfAll(content.slice(at)) + head.length;
  const note = `[… ${total - shownLength} of ${total} characters omitted]`;
  return [...content.slice(0, at), textBlock(head === '' ? note : `${head}\n${note}`)];
};

export const lengthOfAll = (content: readonly ContentBlock[]): number =>
  content.reduce((sum, block) => sum + lengthOf(block), 0);

const lengthOf = (block: ContentBlock): number => {
  if (block.type === 'text') return block.text.length;
  return block.source.kind === 'base64' ? block.source.data.length : 0;
};

export const blockOf = (block: ContentBlock): McpBlock => {
  if (block.type === 'text') return { type: 'text', text: block.text };
  const { source, type } = block;
  const name = block.type === 'file' ? (block.name ?? 'file') : type;
  if (source.kind === 'url') {
    const { url: uri, mediaType: mimeType } = source;
    return { type: 'resource_link', uri, name, ...(mimeType !== undefined && { mimeType }) };
  }
  // Only the vendor of the model can read this block.
  if (source.kind === 'id') return { type: 'text', text: `[${name}]` };
  const { data, mediaType: mimeType } = source;
  if (type !== 'file') return { type, data, mimeType };
  const uri = URL.canParse(name) ? name : `file:///${encodeURIComponent(name)}`;
  const text = isTextual.test(mimeType) ? textOfBytes(data) : undefined;
  const content = text === undefined ? { blob: data } : { text };
  return { type: 'resource', resource: { uri, mimeType, ...content } };
};

const isTextual = /^(text\/|application\/(json|xml|yaml)\b)/;

/** Undefined if the bytes are not UTF-8. */
const textOfBytes = (data: string): string | undefined => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(data, 'base64'));
  } catch {
    return undefined;
  }
};
