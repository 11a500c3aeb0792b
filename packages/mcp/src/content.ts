import {
  type ContentBlock,
  type MediaSource,
  textBlock,
  toolOutput,
  type ToolOutput,
} from 'millrace';
import { isRecord } from 'millrace/values';
import { cleaned, lineOfJson } from './text.js';

type Fields = Readonly<Record<string, unknown>>;

/** A resource of a server, or a part of one. */
export interface McpResource {
  readonly uri: string;
  readonly mimeType?: string;
  /** Its text or, in `base64`, its bytes. Without both, the server sent only the address. */
  readonly text?: string;
  readonly base64?: string;
}

/** The `details` of a result with pages, which start with `ui://`. They are never shown to a model, or run here. */
export interface McpPages {
  readonly pages: readonly McpResource[];
  readonly structuredContent?: unknown;
}

/** The maximum number of characters of a block of an unknown kind. */
const mostUnknown = 20_000;

/**
 * The result of a tool, as the server sent it. Content that violates the protocol is shown as JSON, and does not affect
 * the rest. `structuredContent` becomes `details`, and text if there is no other content. Pages are for the application
 * only.
 */
export const outputOf = (result: unknown, maxLength: number, page?: string): ToolOutput => {
  const fields = isRecord(result) ? result : { content: result };
  const { content, structuredContent, isError, toolResult } = fields;
  const parts = listOf(content ?? toolResult);
  const blocks = parts.map(blockOf);
  const structured = structuredContent ?? undefined;
  const isSilent = !blocks.some((block) => block.type === 'text' && block.text.trim() !== '');
  const other = parts.length === 0 ? (structured ?? rest(fields)) : structured;
  const whole = isSilent && other !== undefined ? [...blocks, ...structuredBlocks(other)] : blocks;
  const pages = [...parts.flatMap(pageIn), ...(page === undefined ? [] : [{ uri: page }])];
  const details = withinLength(
    pages.length === 0
      ? structured
      : { ...(structured !== undefined && { structuredContent: structured }), pages },
    maxLength,
  );
  return toolOutput({
    content: withinBudget(whole, maxLength),
    isError: isError === true || isError === 'true',
    ...(details !== undefined && { details }),
  });
};

/** The value that a server sent instead of content. */
const rest = (fields: Fields): unknown => {
  const {
    content: _c,
    structuredContent: _s,
    isError: _e,
    _meta,
    resultType: _r,
    ...other
  } = fields;
  return Object.keys(other).length === 0 ? undefined : other;
};

const listOf = (content: unknown): readonly unknown[] => {
  if (Array.isArray(content)) return content;
  return content === undefined || content === null ? [] : [content];
};

const structuredBlocks = (value: unknown): readonly ContentBlock[] => {
  const text = json(value);
  return text === tooDeep ? [textBlock(text)] : [textBlock(text), ...noteOnRounding(value)];
};

/** The JSON is already parsed, so a larger integer may differ from the one that the server sent. */
const noteOnRounding = (value: unknown): readonly ContentBlock[] =>
  isRounded(value)
    ? [textBlock(`\n[Integers beyond ${Number.MAX_SAFE_INTEGER} may be rounded.]`)]
    : [];

const isRounded = (value: unknown): boolean =>
  typeof value === 'number'
    ? Number.isInteger(value) && !Number.isSafeInteger(value)
    : typeof value === 'object' && value !== null && Object.values(value).some(isRounded);

export const outputOfResource = (result: unknown, maxLength: number): ToolOutput => {
  const contents = isRecord(result) ? (result['contents'] ?? result['content']) : result;
  const blocks = listOf(contents).map((part) =>
    isRecord(part) ? (ofContents(part) ?? blockOf(part)) : blockOf(part),
  );
  return toolOutput({ content: withinBudget(blocks, maxLength) });
};

export const outputOfPrompt = (result: unknown, maxLength: number): ToolOutput => {
  const { description, messages } = isRecord(result) ? result : { messages: result };
  return toolOutput({
    content: withinBudget(
      [
        ...(typeof description === 'string' ? [textBlock(description)] : []),
        ...listOf(messages).flatMap((message) =>
          isRecord(message) && 'content' in message
            ? [
                textBlock(`[${typeof message['role'] === 'string' ? message['role'] : 'user'}]`),
                ...listOf(message['content']).map(blockOf),
              ]
            : [blockOf(message)],
        ),
      ],
      maxLength,
    ),
  });
};

// ---------------------------------------------------------------- blocks

const blockOf = (block: unknown): ContentBlock => {
  if (typeof block === 'string') return textBlock(block);
  return (isRecord(block) ? known(block) : undefined) ?? textBlock(unknownBlock(block));
};

const known = (block: Fields): ContentBlock | undefined => {
  const { type, text, data, mimeType, resource } = block;
  switch (type) {
    case 'text':
      return typeof text === 'string' ? textBlock(text) : undefined;
    case 'image':
    case 'audio':
      return typeof data === 'string' ? media(type, mimeType, data) : undefined;
    case 'resource_link':
      return linkTo(block);
    case 'resource':
      return isRecord(resource) ? ofContents(resource) : undefined;
    default:
      return undefined;
  }
};

const unknownBlock = (block: unknown): string => {
  const text = json(block);
  return text.length <= mostUnknown ? text : `${text.slice(0, mostUnknown)}…`;
};

const tooDeep = '[A value that is too deep to show.]';

const json = (value: unknown): string => {
  try {
    return lineOfJson(value);
  } catch {
    return tooDeep;
  }
};

const linkTo = ({ uri, name, description, mimeType }: Fields): ContentBlock | undefined => {
  if (typeof uri !== 'string') return undefined;
  const title = typeof name === 'string' ? `${name} ` : '';
  const about = [mimeType, description].filter((it) => typeof it === 'string' && it !== '');
  return textBlock([`Resource: ${title}<${uri}>`, ...about].join('\n'));
};

const isPage = (uri: unknown): uri is string => typeof uri === 'string' && /^ui:\/\//i.test(uri);

const ofContents = ({ uri, text, blob, mimeType }: Fields): ContentBlock | undefined => {
  if (isPage(uri)) return textBlock(`[The page <${uri}> is for the user.]`);
  const name = typeof uri === 'string' ? uri : undefined;
  if (typeof text === 'string') return textBlock(name === undefined ? text : `<${name}>\n${text}`);
  return typeof blob === 'string' ? media('file', mimeType, blob, name) : undefined;
};

const pageIn = (part: unknown): readonly McpResource[] =>
  resourcesIn(isRecord(part) && isRecord(part['resource']) ? part['resource'] : part).filter(
    ({ uri }) => isPage(uri),
  );

const resourcesIn = (part: unknown): readonly McpResource[] => {
  const { uri, text, blob, mimeType } = isRecord(part) ? part : {};
  if (typeof uri !== 'string') return [];
  return [
    {
      uri,
      ...(typeof mimeType === 'string' && { mimeType }),
      ...(typeof text === 'string' && { text }),
      ...(typeof blob === 'string' && { base64: blob }),
    },
  ];
};

/** The parts of a resource, for the application. */
export const partsOf = (result: unknown): readonly McpResource[] =>
  listOf(isRecord(result) ? result['contents'] : undefined).flatMap(resourcesIn);

/** The address of the page of a tool, in either format of MCP Apps. */
export const pageOfTool = (meta: unknown): string | undefined => {
  const { ui, 'ui/resourceUri': flat } = isRecord(meta) ? meta : {};
  const uri = isRecord(ui) ? ui['resourceUri'] : flat;
  return isPage(uri) ? uri : undefined;
};

// ---------------------------------------------------------------- media

type MediaKind = 'image' | 'audio' | 'file';

/** Checks the type of media: providers refuse a whole request if one does not match its content. */
const media = (kind: MediaKind, type: unknown, data: string, name?: string): ContentBlock => {
  const base64 = base64In(data);
  if (base64 === undefined) {
    const of = name === undefined ? '' : ` of <${name}>`;
    return textBlock(`[The ${kind}${of} cannot be shown: its data is not base64.]`);
  }
  const declared = typeof type === 'string' && /^[\w.+-]+\/[\w.+-]+/.test(type) ? type : undefined;
  const mediaType = pictureIn(base64) ?? declared ?? 'application/octet-stream';
  const source: MediaSource = { kind: 'base64', mediaType, data: base64 };
  if (mediaType.startsWith('image/')) return { type: 'image', source };
  if (mediaType.startsWith('audio/')) return { type: 'audio', source };
  return { type: 'file', source, ...(name !== undefined && { name }) };
};

/** Base64 with or without its prefix as a data URL, line breaks, padding and the alphabet of URLs. */
const base64In = (data: string): string | undefined => {
  const bare = data
    .replace(/^data:[^,]{0,200},/, '')
    .replace(/\s/g, '')
    .replace(/-/g, '+')
    .replace(/_/g, '/')
    // A regular expression anchored at the end would take quadratic time.
    .replace(/=[^]*$/, (end) => (/^=*$/.test(end) ? '' : end));
  if (bare === '' || bare.length % 4 === 1 || !/^[A-Za-z0-9+/]*$/.test(bare)) return undefined;
  return bare.padEnd(Math.ceil(bare.length / 4) * 4, '=');
};

/** The first bytes of pictures, as base64. */
const pictures: readonly (readonly [start: string, mediaType: string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
];

const pictureIn = (base64: string): string | undefined =>
  /^UklGR.{9,10}XRUJQ/.test(base64)
    ? 'image/webp'
    : pictures.find(([start]) => base64.startsWith(start))?.[1];

// ---------------------------------------------------------------- limits

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

const withinLength = (value: unknown, maxLength: number): unknown => {
  try {
    return value !== undefined && JSON.stringify(value).length <= maxLength ? value : undefined;
  } catch {
    return undefined;
  }
};
