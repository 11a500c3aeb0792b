import type { Block, ChunkOf, Citation, EventOf, ToolCallBlock } from 'millrace';
import { isSameJson } from 'millrace/values';
import type { MediaBlock, Part, CallRef } from './part.js';
import { createShownTool, type ShownTool } from './shown-tool.js';

/** The state of one message in the client. */
export interface ShownMessage {
  /** Its id in Millrace. */
  readonly id: string;
  /** Its id in the client. */
  readonly messageId: string;
  readonly hasBegun: () => boolean;
  readonly text: () => string;
  chunk(chunk: ChunkOf): readonly Part[];
  appendText(text: string): readonly Part[];
  /** Shows the citations in these blocks that it has not shown. */
  sources(blocks: readonly Block[]): readonly Part[];
  /** Shows the media among these blocks, each once. */
  media(blocks: readonly Block[]): readonly Part[];
  /** Shows a complete tool call, or an edited one. */
  toolCall(toolCall: ToolCallBlock): readonly Part[];
  progress(event: EventOf<'actingChunk'>): readonly Part[];
  result(event: EventOf<'postActing'>, isDenied: boolean): readonly Part[];
  /** The client's id of a tool call; undefined if the message has no such tool call. */
  toolCallId(localId: string): string | undefined;
  /** Ends the open block. */
  pause(): readonly Part[];
  /** Ends everything that is open, with tools without a result as not run. Suspended tools stay open. */
  close(): readonly Part[];
  /** Ends the suspended tools, too, as not run. */
  cancel(): readonly Part[];
}

interface ShownBlock {
  readonly kind: 'text' | 'thinking';
  readonly id: string;
  readonly messageId: string;
}

export const createShownMessage = (by: CallRef, id: string, messageId: string): ShownMessage => {
  const blocks = createShownBlocks(by, messageId);
  const tools = new Map<string, ShownTool>();
  const media: Block[] = [];
  let sources = 0;

  const source = (citation: Citation): Part => {
    sources += 1;
    return { type: 'source', by, id: `${messageId}/source/${sources}`, messageId, citation };
  };
  const { pause } = blocks;
  const toolOf = (localId: string): ShownTool => {
    const tool = tools.get(localId) ?? createShownTool(by, messageId, localId);
    tools.set(localId, tool);
    return tool;
  };

  return {
    id,
    messageId,
    pause,
    hasBegun: () => blocks.count() > 0 || tools.size > 0 || media.length > 0,
    text: blocks.text,
    chunk: ({ kind, delta, toolCall, citation }) => {
      if (citation !== undefined) return [source(citation)];
      if (kind === 'text' || kind === 'thinking') return blocks.append(kind, delta);
      return toolCall === undefined
        ? []
        : [...pause(), ...toolOf(toolCall.id).chunk(toolCall.name, delta)];
    },
    appendText: (text) => blocks.append('text', text),
    sources: (all) => citationsIn(all).slice(sources).map(source),
    media: (all) => {
      const added = newIn(all.filter(isMedia), media);
      media.push(...added);
      const parts = added.map((block) => ({ type: 'media', by, messageId, block }) as const);
      return parts.length === 0 ? [] : [...pause(), ...parts];
    },
    toolCall: (toolCall) => [...pause(), ...toolOf(toolCall.id).toolCall(toolCall)],
    progress: (event) => toolOf(event.toolCall.id).progress(event),
    result: (event, isDenied) => {
      const tool = toolOf(event.toolCall.id);
      if (event.result.suspended !== undefined) return tool.suspend(event.toolCall);
      const status = isDenied ? 'denied' : event.result.isError ? 'failed' : 'done';
      return tool.end({ status, event });
    },
    toolCallId: (localId) => tools.get(localId)?.id,
    close: () => [...pause(), ...[...tools.values()].flatMap((tool) => tool.close())],
    cancel: () => [...tools.values()].flatMap((tool) => tool.end({ status: 'notRun' })),
  };
};

/** The text and the thoughts of a message, in blocks. */
const createShownBlocks = (by: CallRef, messageId: string) => {
  const texts: string[] = [];
  let open: ShownBlock | undefined;
  let count = 0;
  const pause = (): readonly Part[] => {
    if (open === undefined) return [];
    const ended = open;
    open = undefined;
    return [{ type: 'blockEnd', by, ...ended }];
  };
  return {
    pause,
    count: () => count,
    text: (): string => texts.join(''),
    append: (kind: ShownBlock['kind'], delta: string): readonly Part[] => {
      if (delta === '') return [];
      if (kind === 'text') texts.push(delta);
      if (open?.kind === kind) return [{ type: 'blockDelta', by, ...open, delta }];
      const before = pause();
      count += 1;
      open = { kind, id: `${messageId}/${kind}/${count}`, messageId };
      return [
        ...before,
        { type: 'blockStart', by, ...open },
        { type: 'blockDelta', by, ...open, delta },
      ];
    },
  };
};

/** The media that are not shown yet. Compares by value, since a store returns copies; a message may contain equal media. */
const newIn = (media: readonly MediaBlock[], shown: readonly Block[]): readonly MediaBlock[] => {
  const left = [...shown];
  return media.filter((block) => {
    const at = left.findIndex((it) => isSameJson(it, block));
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
};

export const citationsIn = (blocks: readonly Block[]): readonly Citation[] =>
  blocks.flatMap((block) => (block.type === 'text' ? (block.citations ?? []) : []));

export const isMedia = (block: Block): block is MediaBlock =>
  (block.type === 'image' || block.type === 'audio' || block.type === 'file') &&
  block.source.kind !== 'id';
