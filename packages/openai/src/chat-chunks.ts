import type { Finish, ModelChunk } from '@millrace/core';
import { failure, isRecord } from '@millrace/wire';
import { at, countAt, listAt, textAt } from './json.js';
import { keep } from './kept.js';
import { createReasoningDetails, detailText } from './reasoning-details.js';
import { type Reader, type ReaderSource, textChunks } from './reader.js';
import { chatUsage, usageChunks } from './usage.js';

/** From whom a chat completion is read. */
export interface ChatSource extends ReaderSource {
  /** See `Profile.sendsWholeCalls`. */
  readonly sendsWholeCalls?: boolean | undefined;
}

/**
 * Reads one chat completion, of a stream or whole: the same mapping reads a `delta` and a `message`. It takes what
 * any vendor sends: reasoning in any field, usage in any chunk, content in parts, arguments as an object.
 */
export const chatReader = (source: ChatSource): Reader => {
  const details = createReasoningDetails(source.vendor);
  let refused = false;

  const read = (data: unknown): readonly ModelChunk[] => {
    const choice = listAt(data, 'choices').find((it) => (countAt(it, 'index') ?? 0) === 0);
    const delta = at(choice, 'delta') ?? at(choice, 'message');
    const refusal = textAt(delta, 'refusal');
    refused ||= refusal !== '';
    details.add(listAt(delta, 'reasoning_details'));
    return details.seal([
      ...textChunks('thinking', reasoningOf(delta)),
      ...contentChunks(at(delta, 'content')),
      ...textChunks('text', refusal),
      ...listAt(delta, 'tool_calls')
        .filter(isRecord)
        .flatMap((call) => callChunks(call, source)),
      ...legacyCall(at(delta, 'function_call'), source),
      ...usageChunks(usageOf(data, choice), chatUsage),
      ...finishChunks(textAt(choice, 'finish_reason'), refused, source.vendor),
    ]);
  };
  return { read: ({ data }) => read(data), readWhole: read };
};

/** Some servers say the same in two fields: the first one counts. */
const reasoningOf = (delta: unknown): string =>
  textAt(delta, 'reasoning_content') ||
  textAt(delta, 'reasoning') ||
  listAt(delta, 'reasoning_details').map(detailText).join('');

const contentChunks = (content: unknown): readonly ModelChunk[] =>
  typeof content === 'string' ? textChunks('text', content) : listAt(content).flatMap(partChunks);

/** Mistral sends content in parts, and thinking as one of them. */
const partChunks = (part: unknown): readonly ModelChunk[] => {
  switch (at(part, 'type')) {
    case 'text':
      return textChunks('text', textAt(part, 'text'));
    case 'thinking':
      return textChunks('thinking', thoughtOf(at(part, 'thinking')));
    default:
      return [];
  }
};

const thoughtOf = (thinking: unknown): string =>
  typeof thinking === 'string'
    ? thinking
    : listAt(thinking)
        .map((part) => textAt(part, 'text'))
        .join('');

const callChunks = (
  call: unknown,
  { vendor, toolName, sendsWholeCalls }: ChatSource,
): readonly ModelChunk[] => {
  const index = sendsWholeCalls === true ? undefined : at(call, 'index');
  const id = textAt(call, 'id');
  const extra = at(call, 'extra_content');
  const signature = isRecord(extra) ? keep(vendor, 'extra_content', extra) : undefined;
  return [
    ...(signature === undefined ? [] : [{ type: 'thinking', text: '', signature } as const]),
    {
      type: 'toolUse',
      ...(typeof index === 'number' ? { index } : {}),
      ...(id === '' ? {} : { id }),
      ...functionOf(at(call, 'function'), toolName),
    },
  ];
};

const functionOf = (called: unknown, toolName: ChatSource['toolName']) => {
  const name = textAt(called, 'name');
  const written = at(called, 'arguments') ?? '';
  return {
    ...(name === '' ? {} : { name: toolName(name) }),
    ...(typeof written === 'string' ? { json: written } : { input: written }),
  };
};

/** What there was before `tool_calls`: one call without an id. */
const legacyCall = (called: unknown, { toolName }: ChatSource): readonly ModelChunk[] =>
  isRecord(called) ? [{ type: 'toolUse', ...functionOf(called, toolName) }] : [];

/** Beside its own place, Moonshot puts usage into the choice, and Groq into a field of its own. */
const usageOf = (data: unknown, choice: unknown): unknown =>
  at(data, 'usage') ?? at(choice, 'usage') ?? at(data, 'x_groq', 'usage');

const finishChunks = (reason: string, refused: boolean, vendor: string): readonly ModelChunk[] => {
  if (reason === '') return [];
  if (failures.has(reason)) {
    const message = `The answer ended with the finish reason '${reason}'.`;
    throw failure(vendor, { type: 'server_error', message });
  }
  const finish = refused ? 'refusal' : (finishes.get(reason) ?? 'stop');
  return [{ type: 'finish', finish }];
};

/** A reason that is not listed is a `stop`: the vendor ended the answer by itself. */
const finishes: ReadonlyMap<string, Finish> = new Map([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['model_length', 'length'],
  ['content_filter', 'filtered'],
  ['safety', 'filtered'],
  ['sensitive', 'filtered'],
  ['refusal', 'refusal'],
]);

/** Reasons that mean that the vendor broke down: OpenRouter and Mistral, DeepSeek, Zhipu. */
const failures: ReadonlySet<string> = new Set([
  'error',
  'insufficient_system_resource',
  'network_error',
]);
