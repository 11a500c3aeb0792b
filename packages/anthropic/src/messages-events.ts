import type { Finish, ModelChunk, Usage } from '@millrace/core';
import { isRecord, parsedJson } from '@millrace/core/adapter';
import {
  at,
  countAt,
  type JsonRecord,
  listAt,
  placeOf,
  type Reader,
  signatureChunks,
  textAt,
  textChunks,
} from '@millrace/wire';
import { isOpaque, keepBlock } from './opaque-block.js';

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
  /** The blocks in `message_start`, by index, until an event mentions one of them or a later one. */
  const given = new Map<unknown, unknown>();
  let givenReason: unknown;

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
    const begun = open.get(index);
    switch (at(delta, 'type')) {
      case 'text_delta':
        return textChunks('text', textAt(delta, 'text'));
      case 'thinking_delta':
        return textChunks('thinking', textAt(delta, 'thinking'));
      case 'signature_delta':
        if (begun !== undefined) begun.signature = '';
        return signatureChunks(textAt(delta, 'signature'));
      case 'input_json_delta':
        if (begun !== undefined && isOpaque(begun.block)) {
          begun.json.push(textAt(delta, 'partial_json'));
          return [];
        }
        return [{ type: 'toolUse', ...placeOf(index), ...argumentsOf(at(delta, 'partial_json')) }];
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
      ? signatureChunks(keepBlock(withInput(block, json.join(''))), { redacted: true })
      : [];
  };

  const give = (message: unknown): Chunks => {
    listAt(message, 'content').forEach((block, index) => given.set(index, block));
    givenReason = at(message, 'stop_reason');
    return usageChunks(at(message, 'usage'));
  };

  const takeUntil = (end = Infinity): Chunks =>
    [...given].flatMap(([index, block]) => {
      if (Number(index) >= end) return [];
      given.delete(index);
      return [...start(index, block), ...stop(index)];
    });

  const startAfter = (index: unknown, block: unknown): Chunks => {
    // The stream repeats this block, and may add to it.
    if (isSame(given.get(index), block)) given.delete(index);
    return [...takeUntil(Number(index) + 1), ...start(index, block)];
  };

  const addAfter = (index: unknown, delta: unknown): Chunks => {
    if (given.size === 0) return addTo(index, delta);
    const block = given.get(index);
    given.delete(index);
    return [...takeUntil(Number(index)), ...start(index, block), ...addTo(index, delta)];
  };

  const end = (reason: unknown, usage?: unknown): Chunks => {
    const finish = finishChunks(reason);
    if (finish.length > 0) givenReason = undefined;
    return [...takeUntil(), ...usageChunks(usage), ...finish];
  };

  const read = (data: unknown): Chunks => {
    const index = at(data, 'index');
    switch (at(data, 'type')) {
      case 'message_start':
        return give(at(data, 'message'));
      case 'content_block_start':
        return startAfter(index, at(data, 'content_block'));
      case 'content_block_delta':
        return addAfter(index, at(data, 'delta'));
      case 'content_block_stop':
        return [...takeUntil(Number(index) + 1), ...stop(index)];
      case 'message_delta':
        return end(at(data, 'delta', 'stop_reason'), at(data, 'usage'));
      case 'message_stop':
        return end(givenReason);
      default:
        return [];
    }
  };

  const readWhole = (body: unknown): Chunks =>
    Array.isArray(at(body, 'content')) ? [...give(body), ...end(at(body, 'stop_reason'))] : [];

  return {
    read: ({ data }) => read(data),
    readWhole,
    isLast: ({ data }) => at(data, 'type') === 'message_stop',
  };
};

const isSame = (one: unknown, other: unknown): boolean =>
  at(one, 'type') === at(other, 'type') && at(one, 'id') === at(other, 'id');

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
  ...placeOf(index),
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
  const said = counters.flatMap(([ours, theirs]) => {
    const tokens = countAt(counted, theirs);
    return tokens === undefined ? [] : [[ours, tokens] as const];
  });
  return said.length === 0 ? [] : [{ type: 'usage', usage: Object.fromEntries(said) }];
};

const finishChunks = (reason: unknown): Chunks =>
  typeof reason === 'string' ? [{ type: 'finish', finish: finishes.get(reason) ?? 'stop' }] : [];
