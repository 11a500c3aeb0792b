import type {
  AssistantBlock,
  AssistantMessage,
  ContentBlock,
  Message,
  ToolMessage,
  ToolResultBlock,
} from '@millrace/core';
import {
  decodeSignature,
  listAt,
  type Serializer,
  textAt,
  type WireNames,
  withNamePrefix,
} from '@millrace/wire';
import type { ResponseInputContent, ResponseInputItem } from 'openai/resources/responses/responses';
import { contentOf, mediaOf, resultText } from './content.js';
import { joinItems, type JsonItems, toJsonItems } from './json-items.js';
import { addressOf, checkMedia, fileName, inlined, type MediaBlock, unsendable } from './media.js';
import { pagedSerializer } from './paged-serializer.js';
import type { Profile } from './profile.js';
import type { Target } from './wire-model.js';

/** The model and vendor of input items. */
export interface ResponsesTarget extends Target {
  /** The vendor stores its responses, and refers to them by ID. */
  readonly store: boolean;
}

/**
 * Creates a serializer of messages as input items of the Responses API, as the items of a JSON array. It throws for a
 * block that cannot be sent.
 */
export const responsesInput = (target: ResponsesTarget): Serializer<string> => {
  const write: Serializer<JsonItems> = (messages, naming) =>
    joinItems(
      messages
        .flatMap((message) => fromMessage(message, target, naming))
        .map((item) => toJsonItems(item.type ?? 'message', item)),
    );
  const writeAll = pagedSerializer(write, (passages) => joinItems(passages));
  return (messages, naming) => writeAll(messages, naming).json;
};

const fromMessage = (
  message: Message,
  target: ResponsesTarget,
  naming: WireNames,
): readonly ResponseInputItem[] => {
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: partsOf(withNamePrefix(message), target) }];
    case 'assistant':
      return fromAssistant(message, target, naming);
    case 'tool':
      return fromTools(message, target, naming);
  }
};

const partsOf = (content: readonly ContentBlock[], target: ResponsesTarget) =>
  contentOf(content, (block): ResponseInputContent => {
    if (block.type === 'text') return { type: 'input_text', text: block.text };
    const { profile, model } = target;
    checkMedia(block, { model, media: profile.media });
    return responsesPart(inlined(block), model);
  });

/** Throws for a block that cannot be sent. */
export const responsesPart = (block: MediaBlock, model: string): ResponseInputContent => {
  const { type, source } = block;
  if (type === 'audio') throw unsendable(type, model, 'the Responses API does not accept audio');
  if (type === 'image') {
    const address = source.kind === 'id' ? { file_id: source.id } : { image_url: addressOf(block) };
    return { type: 'input_image', detail: block.detail ?? 'auto', ...address };
  }
  if (source.kind === 'id') return { type: 'input_file', file_id: source.id };
  return source.kind === 'url'
    ? { type: 'input_file', file_url: source.url }
    : { type: 'input_file', filename: fileName(block), file_data: addressOf(block) };
};

const fromAssistant = (
  { content }: AssistantMessage,
  target: ResponsesTarget,
  { toolName, toolId }: WireNames,
): readonly ResponseInputItem[] => {
  const { profile } = target;
  const items = content.flatMap((block, index): readonly ResponseInputItem[] => {
    switch (block.type) {
      case 'text':
        return block.text === '' ? [] : [textItem(block.text, content[index - 1], profile)];
      case 'thinking': {
        const item = decodeSignature(profile.name, 'item', block.signature);
        return isItem(item) && isSendable(item, target) ? [item] : [];
      }
      case 'tool_call':
        return [
          {
            type: 'function_call',
            call_id: toolId(block.id),
            name: toolName(block.name),
            arguments: JSON.stringify(block.input),
          },
        ];
      default:
        return [];
    }
  });
  // Reasoning is rejected without the item that follows it.
  const end = items.findLastIndex(({ type }) => type !== 'reasoning');
  return items.slice(0, end + 1);
};

/** Text, with the phase that the vendor gave it. */
const textItem = (
  text: string,
  before: AssistantBlock | undefined,
  { name }: Profile,
): ResponseInputItem => {
  const phase =
    before?.type === 'thinking' ? decodeSignature(name, 'phase', before.signature) : undefined;
  return phase === 'commentary' || phase === 'final_answer'
    ? { role: 'assistant', content: text, phase }
    : { role: 'assistant', content: text };
};

const isItem = (value: unknown): value is ResponseInputItem => textAt(value, 'type') !== '';

/** Reasoning that the vendor did not store needs its content, encrypted if the model encrypts it. */
const isSendable = (
  item: ResponseInputItem,
  { profile: { encryptsReasoning }, model, store }: ResponsesTarget,
): boolean => {
  if (item.type !== 'reasoning' || store) return true;
  return encryptsReasoning?.test(model) === true
    ? textAt(item, 'encrypted_content') !== ''
    : listAt(item, 'content').length > 0;
};

const fromTools = (
  { content }: ToolMessage,
  target: ResponsesTarget,
  { toolId }: WireNames,
): readonly ResponseInputItem[] =>
  content.map((result) => ({
    type: 'function_call_output',
    call_id: toolId(result.toolCallId),
    output: outputOf(result, target),
  }));

const outputOf = (result: ToolResultBlock, target: ResponsesTarget) => {
  const text = resultText(result);
  const media = mediaOf(result.content);
  return media.length === 0 ? text : partsOf([{ type: 'text', text }, ...media], target);
};
