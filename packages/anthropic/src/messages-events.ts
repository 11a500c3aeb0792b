import type { Finish, ModelChunk, Usage } from '@millrace/core';
import { isRecord } from '@millrace/wire';
import { isOpaque, keep } from './opaque-block.js';

/** Reads one answer of the Messages API. */
export interface MessagesReader {
  /** Reads the data of one event. Unknown events, blocks and deltas give nothing. */
  readonly read: (data: unknown) => readonly ModelChunk[];
  /** Reads an answer that came whole; nothing, where it is no answer. */
  readonly readWhole: (body: unknown) => readonly ModelChunk[];
}

type Fields = Readonly<Record<string, unknown>>;

/** A block that has begun and not stopped. */
interface OpenBlock {
  readonly block: Fields;
  /** What came of the input of a tool that Anthropic runs itself. */
  readonly json: string[];
  signature: string | undefined;
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

/** Begins to read an answer. `toolNameOf` turns the wire's name of a tool into ours. */
export const createMessagesReader = (toolNameOf: (wireName: string) => string): MessagesReader => {
  const open = new Map<unknown, OpenBlock>();

  const start = ({ index, content_block: block }: Fields): readonly ModelChunk[] => {
    if (!isRecord(block)) return [];
    open.set(index, { block, json: [], signature: textOf(block['signature']) });
    switch (block['type']) {
      case 'text':
        return textChunk(block['text']);
      case 'thinking':
        return thinkingChunk(block['thinking']);
      case 'redacted_thinking':
        return redactedChunk(block['data']);
      case 'tool_use':
        return [toolUseChunk(index, block, toolNameOf)];
      default:
        return [];
    }
  };

  const addTo = ({ index, delta }: Fields): readonly ModelChunk[] => {
    if (!isRecord(delta)) return [];
    const begun = open.get(index);
    switch (delta['type']) {
      case 'text_delta':
        return textChunk(delta['text']);
      case 'thinking_delta':
        return thinkingChunk(delta['thinking']);
      case 'signature_delta':
        if (begun !== undefined) begun.signature = undefined;
        return signatureChunk(textOf(delta['signature']));
      case 'input_json_delta':
        if (begun !== undefined && isOpaque(begun.block)) {
          begun.json.push(textOf(delta['partial_json']) ?? '');
          return [];
        }
        return [{ type: 'toolUse', ...indexOf(index), ...argumentsOf(delta['partial_json']) }];
      default:
        return [];
    }
  };

  const stop = ({ index }: Fields): readonly ModelChunk[] => {
    const begun = open.get(index);
    open.delete(index);
    if (begun === undefined) return [];
    const { block, json, signature } = begun;
    if (block['type'] === 'thinking') return signatureChunk(signature);
    return isOpaque(block) ? redactedChunk(keep(withInput(block, json.join('')))) : [];
  };

  const read = (data: unknown): readonly ModelChunk[] => {
    if (!isRecord(data)) return [];
    switch (data['type']) {
      case 'message_start':
        return isRecord(data['message']) ? usageChunk(data['message']['usage']) : [];
      case 'content_block_start':
        return start(data);
      case 'content_block_delta':
        return addTo(data);
      case 'content_block_stop':
        return stop(data);
      case 'message_delta':
        return [
          ...usageChunk(data['usage']),
          ...finishChunk(isRecord(data['delta']) ? data['delta']['stop_reason'] : undefined),
        ];
      default:
        return [];
    }
  };

  const readWhole = (body: unknown): readonly ModelChunk[] => {
    if (!isRecord(body) || !Array.isArray(body['content'])) return [];
    const blocks: readonly unknown[] = body['content'];
    return [
      ...usageChunk(body['usage']),
      ...blocks.flatMap((block, index) => [
        ...start({ index, content_block: block }),
        ...stop({ index }),
      ]),
      ...finishChunk(body['stop_reason']),
    ];
  };

  return { read, readWhole };
};

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

const textChunk = (value: unknown): readonly ModelChunk[] => {
  const text = textOf(value);
  return text === undefined ? [] : [{ type: 'text', text }];
};

const thinkingChunk = (value: unknown): readonly ModelChunk[] => {
  const text = textOf(value);
  return text === undefined ? [] : [{ type: 'thinking', text }];
};

const signatureChunk = (signature: string | undefined): readonly ModelChunk[] =>
  signature === undefined ? [] : [{ type: 'thinking', text: '', signature }];

const redactedChunk = (data: unknown): readonly ModelChunk[] => {
  const signature = textOf(data);
  return signature === undefined ? [] : [{ type: 'thinking', text: '', signature, redacted: true }];
};

const indexOf = (index: unknown): { readonly index?: number } =>
  typeof index === 'number' ? { index } : {};

/** Arguments come as text in pieces; some servers that speak this wire send them as an object. */
const argumentsOf = (value: unknown): { readonly json?: string; readonly input?: unknown } => {
  if (typeof value === 'string') return { json: value };
  return value === undefined || value === null ? {} : { input: value };
};

const toolUseChunk = (
  index: unknown,
  { id, name, input }: Fields,
  toolNameOf: (wireName: string) => string,
): ModelChunk => ({
  type: 'toolUse',
  ...indexOf(index),
  ...(typeof id === 'string' ? { id } : {}),
  ...(typeof name === 'string' ? { name: toolNameOf(name) } : {}),
  // An empty object is the wire's way to say that the input follows.
  ...(isRecord(input) && Object.keys(input).length === 0 ? {} : argumentsOf(input)),
});

const withInput = (block: Fields, json: string): Fields => {
  if (json === '') return block;
  try {
    const input: unknown = JSON.parse(json);
    return { ...block, input };
  } catch {
    return block;
  }
};

const counters = [
  ['inputTokens', 'input_tokens'],
  ['outputTokens', 'output_tokens'],
  ['cacheReadTokens', 'cache_read_input_tokens'],
  ['cacheWriteTokens', 'cache_creation_input_tokens'],
] as const satisfies readonly (readonly [keyof Usage, string])[];

const usageChunk = (counted: unknown): readonly ModelChunk[] => {
  if (!isRecord(counted)) return [];
  const said = counters.flatMap(([ours, theirs]) => {
    const tokens = counted[theirs];
    return typeof tokens === 'number' ? [[ours, tokens] as const] : [];
  });
  return said.length === 0 ? [] : [{ type: 'usage', usage: Object.fromEntries(said) }];
};

const finishChunk = (reason: unknown): readonly ModelChunk[] =>
  typeof reason === 'string' ? [{ type: 'finish', finish: finishes.get(reason) ?? 'stop' }] : [];
