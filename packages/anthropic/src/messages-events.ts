import type { Finish, ModelChunk, Usage } from '@millrace/core';
import { exactJson, isRecord } from '@millrace/core/values';
import {
  at,
  blockIndex,
  countAt,
  type JsonRecord,
  listAt,
  type Reader,
  signatureChunks,
  textAt,
  textChunks,
} from '@millrace/wire';
import { encodeBlock, isOpaque } from './opaque-block.js';

type Chunks = readonly ModelChunk[];

interface OpenBlock {
  readonly block: JsonRecord;
  /** Chunks of the input of a built-in tool. */
  readonly json: string[];
  signature: string;
}

/** Finishes by stop reason. Any other reason, even an unknown one, means that the answer is complete. */
const finishes: ReadonlyMap<unknown, Finish | 'pause'> = new Map([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
]);

/**
 * Creates the reader of one answer of the Messages API. It ignores unknown events, blocks and deltas. Some servers send
 * content in `message_start`, which is read like streamed content. `toolNameOf` maps tool names back.
 */
export const createMessagesReader = (toolNameOf: (wireName: string) => string): Reader => {
  const open = new Map<unknown, OpenBlock>();
  /** The content of `message_start`, and the number of its blocks that have been read. */
  let startContent: readonly unknown[] = [];
  let readCount = 0;
  /** The stop reason in `message_start`, which counts if no other one follows. */
  let startReason: unknown;

  /** A tool of the vendor that runs: its result is the next block. */
  let running: string | undefined;

  const start = (index: unknown, block: unknown): Chunks => {
    if (!isRecord(block)) return [];
    running = undefined;
    open.set(index, { block, json: [], signature: textAt(block, 'signature') });
    switch (block['type']) {
      case 'text':
        return textChunks('text', textAt(block, 'text'));
      case 'thinking':
        return textChunks('thinking', textAt(block, 'thinking'));
      case 'redacted_thinking':
        return signatureChunks(textAt(block, 'data'), { redacted: true });
      case 'tool_use':
        return [toolCallChunk(index, block, toolNameOf)];
      default:
        return [];
    }
  };

  const addTo = (index: unknown, delta: unknown): Chunks => {
    const opened = open.get(index);
    switch (at(delta, 'type')) {
      case 'text_delta':
        return textChunks('text', textAt(delta, 'text'));
      case 'thinking_delta':
        return textChunks('thinking', textAt(delta, 'thinking'));
      case 'signature_delta':
        if (opened !== undefined) opened.signature = '';
        return signatureChunks(textAt(delta, 'signature'));
      case 'input_json_delta':
        if (opened !== undefined && isOpaque(opened.block)) {
          opened.json.push(textAt(delta, 'partial_json'));
          return [];
        }
        return [
          { type: 'toolCall', ...blockIndex(index), ...argumentsOf(at(delta, 'partial_json')) },
        ];
      default:
        return [];
    }
  };

  const stop = (index: unknown): Chunks => {
    const opened = open.get(index);
    open.delete(index);
    if (opened === undefined) return [];
    const { block, json, signature } = opened;
    if (block['type'] === 'server_tool_use' || block['type'] === 'mcp_tool_use') {
      running = textAt(block, 'name');
    }
    if (block['type'] === 'thinking') return signatureChunks(signature);
    return isOpaque(block)
      ? signatureChunks(encodeBlock(withInput(block, json.join(''))), { redacted: true })
      : [];
  };

  /** Reads the blocks of `message_start` up to the block of an event. */
  const readStartContent = (data: unknown): Chunks => {
    const index = at(data, 'index');
    const end = textAt(data, 'type').startsWith('message_') ? Infinity : Number(index) + 1;
    return startContent.slice(readCount, end).flatMap((block) => {
      const place = readCount++;
      // The stream repeats this block, perhaps with more content.
      const isRepeated =
        place === index &&
        ['type', 'id'].every((key) => at(block, key) === at(data, 'content_block', key));
      return isRepeated ? [] : [...start(place, block), ...stop(place)];
    });
  };

  const readNext = (data: unknown): Chunks => {
    const index = at(data, 'index');
    switch (at(data, 'type')) {
      case 'message_start':
        startContent = listAt(data, 'message', 'content');
        startReason = at(data, 'message', 'stop_reason');
        return usageChunks(at(data, 'message', 'usage'));
      case 'content_block_start':
        return start(index, at(data, 'content_block'));
      case 'content_block_delta':
        return addTo(index, at(data, 'delta'));
      case 'content_block_stop':
        return stop(index);
      case 'message_delta':
        return [
          ...usageChunks(at(data, 'usage')),
          ...finishChunks(at(data, 'delta', 'stop_reason')),
        ];
      case 'message_stop':
        return finishChunks(startReason);
      default:
        return [];
    }
  };

  const read = (data: unknown): Chunks =>
    readCount === startContent.length
      ? readNext(data)
      : [...readStartContent(data), ...readNext(data)];

  /** A non-streaming answer is a `message_start` with all content. */
  const readWhole = (message: unknown): Chunks =>
    Array.isArray(at(message, 'content'))
      ? [...read({ type: 'message_start', message }), ...read({ type: 'message_stop' })]
      : [];

  return {
    read: ({ data }) => read(data),
    readWhole,
    isLast: ({ data }) => at(data, 'type') === 'message_stop',
    working: () => {
      const types = [...open.values()].map(({ block }) => textAt(block, 'type'));
      return running ?? types.find((type) => type !== 'text');
    },
  };
};

/** Arguments are streamed as strings; some compatible servers send them as an object. */
const argumentsOf = (value: unknown): { readonly json?: string; readonly input?: unknown } => {
  if (typeof value === 'string') return { json: value };
  return value === undefined || value === null ? {} : { input: value };
};

const toolCallChunk = (
  index: unknown,
  { id, name, input }: JsonRecord,
  toolNameOf: (wireName: string) => string,
): ModelChunk => ({
  type: 'toolCall',
  ...blockIndex(index),
  ...(typeof id === 'string' ? { id } : {}),
  ...(typeof name === 'string' ? { name: toolNameOf(name) } : {}),
  // An empty object means that the input follows.
  ...(isRecord(input) && Object.keys(input).length === 0 ? {} : argumentsOf(input)),
});

const withInput = (block: JsonRecord, json: string): JsonRecord => {
  const input = exactJson(json);
  return input === undefined ? block : { ...block, input };
};

const counters = [
  ['inputTokens', 'input_tokens'],
  ['outputTokens', 'output_tokens'],
  ['cacheReadTokens', 'cache_read_input_tokens'],
  ['cacheWriteTokens', 'cache_creation_input_tokens'],
] as const satisfies readonly (readonly [keyof Usage, string])[];

const usageChunks = (counted: unknown): Chunks => {
  const counts = counters.flatMap(([ours, theirs]) => {
    const tokens = countAt(counted, theirs);
    return tokens === undefined ? [] : [[ours, tokens] as const];
  });
  return counts.length === 0 ? [] : [{ type: 'usage', usage: Object.fromEntries(counts) }];
};

const finishChunks = (reason: unknown): Chunks =>
  typeof reason === 'string' ? [{ type: 'finish', finish: finishes.get(reason) ?? 'stop' }] : [];
