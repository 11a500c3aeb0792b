import { type Block, createToolParts, type Message, type ModelChunk, textOf } from '@millrace/core';
import { isRecord, parsedJson } from '@millrace/core/values';

/** Redacts a string of captured content. */
export type Redact = (text: string) => string;

/** A part of a message, in the form of the conventions. */
export interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A value as JSON, with every string, number and key redacted: within JSON, escapes would hide matches. */
export const redactedJson = (value: unknown, redact: Redact): string => {
  try {
    return JSON.stringify(redacted(value, redact));
  } catch {
    // It is nested too deeply, or within itself.
    return notCaptured;
  }
};

/** Stands for content that cannot be captured. */
export const notCaptured = '[not captured]';

const redacted = (value: unknown, redact: Redact): unknown => {
  if (typeof value === 'string') return redact(value);
  if (typeof value === 'number') {
    const text = String(value);
    const clean = redact(text);
    return clean === text ? value : clean;
  }
  if (Array.isArray(value)) return value.map((item) => redacted(item, redact));
  if (!isRecord(value)) return typeof value === 'bigint' ? redact(String(value)) : value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [redact(key), redacted(item, redact)]),
  );
};

/** Messages in the form of the conventions, without the bytes of media. */
export const toMessages = (messages: readonly Message[]): readonly unknown[] =>
  messages.map(({ role, content }) => ({ role, parts: toParts(content) }));

/** An answer of a model in the form of the conventions. */
export const toAnswer = (parts: readonly Part[], finish: string): readonly unknown[] => [
  { role: 'assistant', parts, finish_reason: finish },
];

/** The parts of blocks, in the form of the conventions. */
export const toParts = (blocks: readonly Block[]): readonly Part[] => blocks.map(toPart);

const toPart = (block: Block): Part => {
  switch (block.type) {
    case 'text':
      return { type: 'text', content: block.text };
    case 'thinking':
      return { type: 'reasoning', content: block.text };
    case 'tool_call': {
      const { id, name, input, invalidInput } = block;
      return { type: 'tool_call', id, name, arguments: invalidInput ?? input };
    }
    case 'tool_result':
      return { type: 'tool_call_response', id: block.toolCallId, response: textOf(block) };
    default:
      return { type: block.type };
  }
};

/** Collects the chunks of an answer. */
export interface Collector {
  add(chunk: ModelChunk): void;
  parts(): readonly Part[];
}

export const createCollector = (): Collector => {
  let made: (() => Part)[] = [];
  let open: { readonly type: string; text: string } | undefined;
  let toolParts = createToolParts(0, () => false);
  const append = (type: 'text' | 'reasoning', delta: string): void => {
    if (open?.type !== type) {
      const own = { type, text: '' };
      made.push(() => ({ type, content: own.text }));
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
      return { type: 'tool_call', ...id, name, arguments: input ?? parsedJson(text) ?? text };
    });
  };
  return {
    add: (chunk) => {
      if (chunk.type === 'text') append('text', chunk.text);
      else if (chunk.type === 'thinking') append('reasoning', chunk.text);
      else if (chunk.type === 'toolCall') addCall(chunk);
      else if (chunk.type === 'block') made.push(() => toPart(chunk.block));
      else if (chunk.type === 'restart') {
        made = [];
        open = undefined;
        toolParts = createToolParts(0, () => false);
      }
    },
    parts: () => made.map((make) => make()),
  };
};
