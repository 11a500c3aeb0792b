import type { Block, ChunkOf, EventOf, ToolUseBlock } from '@millrace/core';
import type { MediaBlock, Part, Speaker } from './part.js';
import { createShownTool, type ShownTool } from './shown-tool.js';

/** What a reader has seen of one message. */
export interface ShownMessage {
  /** What Millrace calls the message. */
  readonly id: string;
  /** What the reader calls it. */
  readonly messageId: string;
  readonly hasBegun: boolean;
  readonly text: string;
  chunk(chunk: ChunkOf): readonly Part[];
  /** Goes on with the text. */
  say(text: string): readonly Part[];
  /** Shows the media among these blocks, each once. */
  media(blocks: readonly Block[]): readonly Part[];
  /** A use of a tool is whole, or has been edited since. */
  toolUse(toolUse: ToolUseBlock): readonly Part[];
  progress(event: EventOf<'actingChunk'>): readonly Part[];
  result(event: EventOf<'postActing'>, isDenied: boolean): readonly Part[];
  /** What the reader calls a use of a tool, where there is one of that id. */
  toolCallId(toolUseId: string): string | undefined;
  /** Ends the block that is open. */
  pause(): readonly Part[];
  /** Ends all that is open: tools that nobody has answered have not been run. Suspended ones stay open. */
  close(): readonly Part[];
  /** Ends the suspended tools as well: nobody waits for their results any more. */
  cancel(): readonly Part[];
}

interface ShownBlock {
  readonly kind: 'text' | 'thinking';
  readonly id: string;
  readonly messageId: string;
}

/** Begins a message that nobody has seen anything of. */
export const createShownMessage = (by: Speaker, id: string, messageId: string): ShownMessage => {
  const texts: string[] = [];
  const tools = new Map<string, ShownTool>();
  const media = new Set<Block>();
  let block: ShownBlock | undefined;
  let blocks = 0;

  const pause = (): readonly Part[] => {
    if (block === undefined) return [];
    const ended = block;
    block = undefined;
    return [{ type: 'blockEnd', by, ...ended }];
  };
  const say = (kind: ShownBlock['kind'], delta: string): readonly Part[] => {
    if (delta === '') return [];
    if (kind === 'text') texts.push(delta);
    if (block?.kind === kind) return [{ type: 'blockDelta', by, ...block, delta }];
    const before = pause();
    blocks += 1;
    block = { kind, id: `${messageId}/${kind}/${blocks}`, messageId };
    return [
      ...before,
      { type: 'blockStart', by, ...block },
      { type: 'blockDelta', by, ...block, delta },
    ];
  };
  const toolOf = (toolUseId: string): ShownTool => {
    const tool = tools.get(toolUseId) ?? createShownTool(by, messageId, toolUseId);
    tools.set(toolUseId, tool);
    return tool;
  };

  return {
    id,
    messageId,
    pause,
    get hasBegun() {
      return blocks > 0 || tools.size > 0 || media.size > 0;
    },
    get text() {
      return texts.join('');
    },
    chunk: ({ kind, delta, toolUse }) => {
      if (kind !== 'toolInput') return say(kind, delta);
      return toolUse === undefined
        ? []
        : [...pause(), ...toolOf(toolUse.id).chunk(toolUse.name, delta)];
    },
    say: (text) => say('text', text),
    media: (all) => {
      const fresh = all.filter(isMedia).filter((it) => !media.has(it));
      fresh.forEach((it) => media.add(it));
      const parts = fresh.map((it): Part => ({ type: 'media', by, messageId, block: it }));
      return parts.length === 0 ? [] : [...pause(), ...parts];
    },
    toolUse: (toolUse) => [...pause(), ...toolOf(toolUse.id).toolUse(toolUse)],
    progress: (event) => toolOf(event.toolUse.id).progress(event),
    result: (event, isDenied) => {
      const tool = toolOf(event.toolUse.id);
      if (event.result.suspended !== undefined) return tool.suspend(event.toolUse);
      const status = isDenied ? 'denied' : event.result.isError ? 'failed' : 'done';
      return tool.end({ status, event });
    },
    toolCallId: (toolUseId) => tools.get(toolUseId)?.id,
    close: () => [...pause(), ...[...tools.values()].flatMap((tool) => tool.close())],
    cancel: () => [...tools.values()].flatMap((tool) => tool.end({ status: 'notRun' })),
  };
};

const isMedia = (block: Block): block is MediaBlock =>
  block.type === 'image' || block.type === 'audio' || block.type === 'file';
