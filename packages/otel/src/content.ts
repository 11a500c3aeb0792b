import {
  type Block,
  createToolParts,
  type Finish,
  type Message,
  type ModelChunk,
  textOf,
} from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';

/** Redacts a string of captured content. */
export type Redact = (text: string) => string;

/** A part of a message, in the form of the conventions. */
export interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Captured content as JSON. It is redacted before: within JSON, escapes would hide matches. */
export const toJson = (capture: () => unknown): string => {
  try {
    return JSON.stringify(capture());
  } catch {
    // It is nested too deeply, or within itself.
    return notCaptured;
  }
};

/** Stands for content that cannot be captured. */
export const notCaptured = '[not captured]';

/** Arguments of a tool, with every string, number and key redacted. Keys that become equal get `_` at their end. */
export const redacted = (value: unknown, redact: Redact): unknown => {
  if (typeof value === 'string') return redact(value);
  if (typeof value === 'number') {
    const text = String(value);
    const clean = redact(text);
    return clean === text ? value : clean;
  }
  if (Array.isArray(value)) return value.map((item) => redacted(item, redact));
  if (!isRecord(value)) return typeof value === 'bigint' ? redact(String(value)) : value;
  const clean = new Map<string, unknown>();
  for (const [key, item] of Object.entries(value)) {
    let name = redact(key);
    while (clean.has(name)) name += '_';
    clean.set(name, redacted(item, redact));
  }
  return Object.fromEntries(clean);
};

/** Messages in the form of the conventions, without the bytes of media. */
export const toMessages = (messages: readonly Message[], redact: Redact): readonly unknown[] =>
  messages.map(({ role, content }) => ({ role, parts: toParts(content, redact) }));

/** The finish reason of the conventions. They do not distinguish refusals from filters, or a pause from a stop. */
export const finishReason = (finish: Finish | 'pause', hasToolCalls: boolean): string => {
  if (finish === 'refusal' || finish === 'filtered') return 'content_filter';
  if (finish === 'length') return 'length';
  return hasToolCalls ? 'tool_call' : 'stop';
};

export const isToolCall = ({ type }: Block): boolean => type === 'tool_call';

/** An answer of a model in the form of the conventions. */
export const toAnswer = (parts: readonly Part[], finish: string): readonly unknown[] => [
  { role: 'assistant', parts, finish_reason: finish },
];

/** The parts of blocks, in the form of the conventions: their texts and arguments are redacted. */
export const toParts = (blocks: readonly Block[], redact: Redact): readonly Part[] =>
  blocks.map((block) => toPart(block, redact));

const toPart = (block: Block, redact: Redact): Part => {
  switch (block.type) {
    case 'text':
      return { type: 'text', content: redact(block.text) };
    case 'thinking':
      return { type: 'reasoning', content: redact(block.text) };
    case 'tool_call': {
      const { id, name, input, invalidInput } = block;
      return { type: 'tool_call', id, name, arguments: redacted(invalidInput ?? input, redact) };
    }
    case 'tool_result':
      return { type: 'tool_call_response', id: block.toolCallId, response: redact(textOf(block)) };
    default:
      return { type: block.type };
  }
};

/** Collects the chunks of an answer. */
export interface Collector {
  add(chunk: ModelChunk): void;
  parts(): readonly Part[];
}

export const createCollector = (redact: Redact): Collector => {
  let made: (() => Part)[] = [];
  let open: { readonly type: string; text: string } | undefined;
  let toolParts = createToolParts(0, () => false);
  const append = (type: 'text' | 'reasoning', delta: string): void => {
    if (open?.type !== type) {
      const own = { type, text: '' };
      made.push(() => ({ type, content: redact(own.text) }));
      open = own;
    }
    open.text += delta;
  };
  const addCall = (chunk: Extract<ModelChunk, { type: 'toolCall' }>): void => {
    const { part, isNew } = toolParts.add(chunk, 0);
    open = undefined;
    if (!isNew) return;
    made.push(() => {
      const { key, name, input, json } = part;
      const text = json.join('');
      const id = key.id === undefined ? {} : { id: key.id };
      const given = input ?? parsedJson(text) ?? text;
      return { type: 'tool_call', ...id, name, arguments: redacted(given, redact) };
    });
  };
  return {
    add: (chunk) => {
      if (chunk.type === 'text') append('text', chunk.text);
      else if (chunk.type === 'thinking') append('reasoning', chunk.text);
      else if (chunk.type === 'toolCall') addCall(chunk);
      else if (chunk.type === 'block') made.push(() => toPart(chunk.block, redact));
      else if (chunk.type === 'restart') {
        made = [];
        open = undefined;
        toolParts = createToolParts(0, () => false);
      }
    },
    parts: () => made.map((make) => make()),
  };
};
