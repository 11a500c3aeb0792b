import type { ModelChunk } from '@millrace/core';
import { isRecord } from '@millrace/core/adapter';
import {
  at,
  countAt,
  keep,
  listAt,
  placeOf,
  type Reader,
  signatureChunks,
  textAt,
  textChunks,
} from '@millrace/wire';
import { finishChunks } from './finish-reason.js';
import { createReasoningDetails, detailText } from './reasoning-details.js';
import { chatUsage, usageChunks } from './usage.js';
import type { ReaderSource } from './wire-model.js';

/** From whom a chat completion is read. */
export interface ChatSource extends ReaderSource {
  /** See `Profile.sendsWholeCalls`. */
  readonly sendsWholeCalls?: boolean | undefined;
  /** See `Profile.finishesEachCall`. */
  readonly finishesEachCall?: boolean | undefined;
}

/**
 * Reads one chat completion, of a stream or whole: the same mapping reads a `delta` and a `message`. It takes what
 * any vendor sends: reasoning in any field, usage in any chunk, content in parts, arguments as an object.
 */
export const chatReader = (source: ChatSource): Reader => {
  const details = createReasoningDetails(source.vendor);
  let refused = false;
  let held = '';

  /** The finish beside a call is none yet where another call may follow: another one, or usage alone, comes last. */
  const finish = (choice: unknown, hasCalls: boolean): readonly ModelChunk[] => {
    const reason = textAt(choice, 'finish_reason');
    const isHeld = hasCalls && source.finishesEachCall === true;
    if (isHeld) held = reason || held;
    const told = isHeld ? '' : reason || (choice === undefined ? held : '');
    return finishChunks(told, { server: source.server, refused });
  };

  const read = (data: unknown, isWhole: boolean): readonly ModelChunk[] => {
    const choice = listAt(data, 'choices').find((it) => (countAt(it, 'index') ?? 0) === 0);
    const delta = at(choice, 'delta') ?? at(choice, 'message');
    const refusal = textAt(delta, 'refusal');
    refused ||= refusal !== '';
    const calls = listAt(delta, 'tool_calls').filter(isRecord);
    details.add(listAt(delta, 'reasoning_details'));
    return details.seal([
      ...textChunks('thinking', reasoningOf(delta)),
      ...contentChunks(at(delta, 'content')),
      ...textChunks('text', refusal),
      ...calls.flatMap((call) => callChunks(call, source)),
      ...legacyCall(at(delta, 'function_call'), source),
      ...usageChunks(usageOf(data, choice), chatUsage),
      ...finish(choice, calls.length > 0 && !isWhole),
    ]);
  };
  return {
    read: ({ data }) => read(data, false),
    readWhole: (body) => read(body, true),
  };
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
  return [
    ...(isRecord(extra) ? signatureChunks(keep(vendor, 'extra_content', extra)) : []),
    {
      type: 'toolUse',
      ...placeOf(index),
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
