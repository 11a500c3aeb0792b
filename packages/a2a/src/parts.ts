import {
  type Artifact,
  type Message as A2aMessage,
  type Part,
  Role,
  type StreamResponse,
  type Task,
} from '@a2a-js/sdk';
import type { ContentBlock, MediaSource } from 'millrace';

const plain = { metadata: undefined, filename: '' } as const;

export const textPart = (text: string): Part => ({
  ...plain,
  content: { $case: 'text', value: text },
  mediaType: 'text/plain',
});

export const dataPart = (data: unknown): Part => ({
  ...plain,
  content: { $case: 'data', value: data },
  mediaType: 'application/json',
});

export const partOf = (block: ContentBlock): Part => {
  if (block.type === 'text') return textPart(block.text);
  const { source } = block;
  // Only the vendor of the model can read this block.
  if (source.kind === 'id') return textPart(`[${block.type}]`);
  const { mediaType = 'application/octet-stream' } = source;
  const filename = block.type === 'file' ? (block.name ?? '') : '';
  return { ...plain, filename, mediaType, content: contentOf(source) };
};

const contentOf = (
  source: Exclude<MediaSource, { readonly kind: 'id' }>,
): NonNullable<Part['content']> =>
  source.kind === 'url'
    ? { $case: 'url', value: source.url }
    : { $case: 'raw', value: Buffer.from(source.data, 'base64') };

/** The block for a part with text, data or bytes; `undefined` for a URL, and for a part that is not valid. */
export const blockOf = ({ content, filename, mediaType }: Part): ContentBlock | undefined => {
  switch (content?.$case) {
    case 'text':
      return { type: 'text', text: content.value };
    case 'data':
      return { type: 'text', text: JSON.stringify(content.value) };
    case 'raw': {
      if (!isMediaType.test(mediaType)) return undefined;
      const data = Buffer.from(content.value).toString('base64');
      const source = { kind: 'base64', mediaType, data } as const;
      const media = /^(?:image|audio)(?=\/)/u.exec(mediaType)?.[0];
      if (media === 'image' || media === 'audio') return { type: media, source };
      return { type: 'file', source, ...(filename !== '' && { name: filename.slice(0, 255) }) };
    }
    default:
      return undefined;
  }
};

const isMediaType = /^[\w.+-]{1,127}\/[\w.+-]{1,127}$/u;

export const messageOf = (
  role: 'user' | 'agent',
  parts: readonly Part[],
  ids: Pick<A2aMessage, 'messageId' | 'contextId' | 'taskId'>,
): A2aMessage => ({
  ...ids,
  role: role === 'user' ? Role.ROLE_USER : Role.ROLE_AGENT,
  parts: [...parts],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

export const artifactOf = (artifactId: string, name: string, parts: readonly Part[]): Artifact => ({
  artifactId,
  name,
  description: '',
  parts: [...parts],
  metadata: undefined,
  extensions: [],
});

export const taskResponse = (task: Task): StreamResponse => ({
  payload: { $case: 'task', value: task },
});
