import type { Finish, ModelChunk, Usage } from '@millrace/core';
import { isRecord, parsedJson } from '@millrace/core/adapter';
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

/** A block that has begun and not stopped. */
interface OpenBlock {
  readonly block: JsonRecord;
  /** What came of the input of a tool that Anthropic runs itself. */
  readonly json: string[];
  signature: string;
}

/**
 * Why an answer ended. A reason that is not here is one that was not known when this was written: the answer is
 * whole.
 */
const finishes: ReadonlyMap<unknown, Finish | 'pause'> = new Map([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
]);

/**
 * Begins to read one answer of the Messages API. Unknown events, blocks and deltas give nothing. Some servers put
 * content into `message_start`, which is read like streamed content. `toolNameOf` turns the wire's name of a tool
 * into ours.
 */
export const createMessagesReader = (toolNameOf: (wireName: string) => string): Reader => {
  const open = new Map<unknown, OpenBlock>();
  /** The content of `message_start`, and how much of it has been read. */
  let startContent: readonly unknown[] = [];
  let readCount = 0;
  /** The stop reason in `message_start`: it counts if no other one comes, as an answer has one finish. */
  let startReason: unknown;

  const start = (index: unknown, block: unknown): Chunks => {
    if (!isRecord(block)) return [];
    open.set(index, { block, json: [], signature: textAt(block, 'signature') });
    switch (block['type']) {
      case 'text':
        return textChunks('text', textAt(block, 'text'));
      case 'thinking':
        return textChunks('thinking', textAt(block, 'thinking'));
      case 'redacted_thinking':
        return signatureChunks(textAt(block, 'data'), { redacted: true });
      case 'tool_use':
        return [toolUseChunk(index, block, toolNameOf)];
      default:
        return [];
    }
  };

  const addTo = (index: unknown, delta: unknown): Chunks => {
    const block = open.get(index);
    switch (at(delta, 'type')) {
      case 'text_delta':
        return textChunks('text', textAt(delta, 'text'));
      case 'thinking_delta':
        return textChunks('thinking', textAt(delta, 'thinking'));
      case 'signature_delta':
        if (block !== undefined) block.signature = '';
        return signatureChunks(textAt(delta, 'signature'));
      case 'input_json_delta':
        if (block !== undefined && isOpaque(block.block)) {
          block.json.push(textAt(delta, 'partial_json'));
          return [];
        }
        return [
          { type: 'toolUse', ...blockIndex(index), ...argumentsOf(at(delta, 'partial_json')) },
        ];
      default:
        return [];
    }
  };

  const stop = (index: unknown): Chunks => {
    const begun = open.get(index);
    open.delete(index);
    if (begun === undefined) return [];
    const { block, json, signature } = begun;
    if (block['type'] === 'thinking') return signatureChunks(signature);
    return isOpaque(block)
      ? signatureChunks(encodeBlock(withInput(block, json.join(''))), { redacted: true })
      : [];
  };

  /** Reads the blocks of `message_start` up to the one that an event is about. */
  const readStartContent = (data: unknown): Chunks => {
    const index = at(data, 'index');
    const end = textAt(data, 'type').startsWith('message_') ? Infinity : Number(index) + 1;
    return startContent.slice(readCount, end).flatMap((block) => {
      const place = readCount++;
      // The stream repeats this block, and may add to it.
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

  /** It is a start that has everything. */
  const readWhole = (message: unknown): Chunks =>
    Array.isArray(at(message, 'content'))
      ? [...read({ type: 'message_start', message }), ...read({ type: 'message_stop' })]
      : [];

  return {
    read: ({ data }) => read(data),
    readWhole,
    isLast: ({ data }) => at(data, 'type') === 'message_stop',
  };
};

/** Arguments come as text in pieces; some servers that speak this wire send them as an object. */
const argumentsOf = (value: unknown): { readonly json?: string; readonly input?: unknown } => {
  if (typeof value === 'string') return { json: value };
  return value === undefined || value === null ? {} : { input: value };
};

const toolUseChunk = (
  index: unknown,
  { id, name, input }: JsonRecord,
  toolNameOf: (wireName: string) => string,
): ModelChunk => ({
  type: 'toolUse',
  ...blockIndex(index),
  ...(typeof id === 'string' ? { id } : {}),
  ...(typeof name === 'string' ? { name: toolNameOf(name) } : {}),
  // An empty object is the wire's way to say that the input follows.
  ...(isRecord(input) && Object.keys(input).length === 0 ? {} : argumentsOf(input)),
});

const withInput = (block: JsonRecord, json: string): JsonRecord => {
  const input = parsedJson(json);
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
