import {
  type AssistantMessage,
  type ContentBlock,
  type ImageDetail,
  type Message,
  textBlock,
  textOf,
  type ToolMessage,
  type UserMessage,
  type VendorData,
} from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import {
  decodeSignature,
  type JsonRecord,
  listAt,
  type Serializer,
  textAt,
  type WireNames,
  withNamePrefix,
} from '@millrace/wire';
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionMessageToolCall,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions';
import { contentOf, mediaOf, resultText } from './content.js';
import { textOfInput } from './custom-tools.js';
import { fieldsOf } from './fields.js';
import { joinItems, type JsonItems, toJsonItems } from './json-items.js';
import { addressOf, checkMedia, fileName, inlined, type MediaBlock, unsendable } from './media.js';
import { pagedSerializer } from './paged-serializer.js';
import type { Target } from './wire-model.js';

type Messages = readonly ChatCompletionMessageParam[];

/** Creates a serializer of messages, as the items of a JSON array. It throws for a block that cannot be sent. */
export const chatMessages = (target: Target): Serializer<string> => {
  const { assistantTextAfterTools: content, continuation } = target.profile;
  const bridge = content === undefined ? '' : JSON.stringify({ role: 'assistant', content });
  const join = (passages: readonly JsonItems[]): JsonItems =>
    joinItems(passages, (last, first) => (last === 'tool' && first === 'user' ? bridge : ''));
  const write: Serializer<JsonItems> = (messages, naming) =>
    join(
      messages
        .flatMap((message) => fromMessage(message, target, naming))
        .map((message) => toJsonItems(message.role, message)),
    );
  const writeAll = pagedSerializer(write, join);
  return (messages, naming) => {
    const { json, last } = writeAll(messages, naming);
    if (last !== 'assistant' || continuation === undefined) return json;
    const at = messages.findLastIndex((message) => write([message], naming).json !== '');
    const before = writeAll(messages.slice(0, at), naming);
    const end = write(messages.slice(at), naming);
    return join([before, { ...end, json: withFields(end.json, continuation) }]).json;
  };
};

const withFields = (json: string, fields: JsonRecord): string =>
  JSON.stringify({ ...fieldsOf(parsedJson(json)), ...fields });

const fromMessage = (message: Message, target: Target, naming: WireNames): Messages => {
  switch (message.role) {
    case 'user':
      return [fromUser(message, target)];
    case 'assistant':
      return fromAssistant(message, target, naming);
    case 'tool':
      return fromTools(message, target, naming);
  }
};

const fromUser = (message: UserMessage, target: Target): ChatCompletionMessageParam => {
  const { name = '', content } = message;
  return target.profile.takesNames === true && /^[a-zA-Z0-9_-]{1,64}$/u.test(name)
    ? { role: 'user', name, content: partsOf(content, target) }
    : { role: 'user', content: partsOf(withNamePrefix(message), target) };
};

const partsOf = (content: readonly ContentBlock[], target: Target) =>
  contentOf(content, (block): ChatCompletionContentPart => {
    if (block.type === 'text') return { type: 'text', text: block.text };
    const { profile, model } = target;
    checkMedia(block, { model, media: profile.media });
    return chatPart(inlined(block), model);
  });

/** Throws for a block that cannot be sent. */
export const chatPart = (block: MediaBlock, model: string): ChatCompletionContentPart => {
  const { type, source } = block;
  if (source.kind === 'id') {
    if (type === 'file') return { type: 'file', file: { file_id: source.id } };
    throw unsendable(type, model, 'it does not accept ids here');
  }
  if (type === 'image') {
    const detail = chatDetail(block.detail);
    const image = { url: addressOf(block), ...(detail === undefined ? {} : { detail }) };
    return { type: 'image_url', image_url: image };
  }
  if (source.kind === 'url') throw unsendable(type, model, 'it accepts only base64 here');
  if (type === 'file') {
    const file = { filename: fileName(block), file_data: addressOf(block) };
    return { type: 'file', file };
  }
  const format = audioFormat(source.mediaType);
  if (format === undefined) {
    throw unsendable(type, model, `it accepts wav and mp3, but not '${source.mediaType}'`);
  }
  return { type: 'input_audio', input_audio: { data: source.data, format } };
};

/** Chat completions know no `original`: `high` comes closest. */
const chatDetail = (detail: ImageDetail | undefined): 'auto' | 'low' | 'high' | undefined =>
  detail === 'original' ? 'high' : detail;

const audioFormat = (mediaType: string): 'wav' | 'mp3' | undefined => {
  if (/^audio\/(x-|vnd\.)?wave?\b/u.test(mediaType)) return 'wav';
  return /^audio\/(x-)?(mpeg|mp3)\b/u.test(mediaType) ? 'mp3' : undefined;
};

const fromAssistant = (message: AssistantMessage, target: Target, naming: WireNames): Messages => {
  const calls = toolCalls(message, target, naming);
  const text = textOf(message);
  if (text === '' && calls.length === 0) return [];
  const wire: ChatCompletionAssistantMessageParam = {
    role: 'assistant',
    content: text === '' && target.profile.takesNoContent === true ? null : text,
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...thinkingBack(message, target, calls.length > 0),
    ...textFields(message, target),
  };
  return [wire];
};

/** The calls of a message, each with the `extra_content` that the vendor wants back. */
const toolCalls = (
  { content }: AssistantMessage,
  { profile: { name: vendor, unsignedCall } }: Target,
  { toolName, toolId }: WireNames,
): ChatCompletionMessageToolCall[] => {
  const extras = content.flatMap((block, index): readonly JsonRecord[] => {
    const before = content[index - 1];
    if (block.type !== 'tool_call') return [];
    const extra =
      before?.type === 'thinking'
        ? decodeSignature(vendor, 'extra_content', before.signature)
        : undefined;
    return [isRecord(extra) ? { extra_content: extra } : {}];
  });
  const isSigned = extras.some((extra) => Object.hasOwn(extra, 'extra_content'));
  const uses = content.filter((block) => block.type === 'tool_call');
  return uses.map(({ id, name, input, vendorData }, index) =>
    isCustomCall(vendorData, vendor)
      ? {
          id: toolId(id),
          type: 'custom' as const,
          custom: { name: toolName(name), input: textOfInput(input) },
        }
      : {
          id: toolId(id),
          type: 'function',
          function: { name: toolName(name), arguments: JSON.stringify(input) },
          ...(index === 0 && !isSigned ? unsignedCall : extras[index]),
        },
  );
};

const isCustomCall = (vendorData: VendorData | undefined, vendor: string): boolean =>
  vendorData?.vendor === vendor && textAt(vendorData.data, 'type') === 'custom';

/** The signatures and citations of the vendor in the text. */
const textFields = (
  { content }: AssistantMessage,
  { profile: { name, takesAnnotations } }: Target,
): JsonRecord => {
  const texts = content.filter((block) => block.type === 'text');
  const signed = texts.findLast(({ vendorData }) => vendorData?.vendor === name)?.vendorData?.data;
  const annotations =
    takesAnnotations === true
      ? texts.flatMap(({ citations = [] }) =>
          citations.flatMap(({ vendorData }) =>
            vendorData?.vendor === name ? [vendorData.data] : [],
          ),
        )
      : [];
  return {
    ...(isRecord(signed) ? { extra_content: signed } : {}),
    ...(annotations.length === 0 ? {} : { annotations }),
  };
};

const thinkingBack = (
  { content }: AssistantMessage,
  { profile: { name, thinkingField } }: Target,
  hasCalls: boolean,
): JsonRecord => {
  const thoughts = content.filter((block) => block.type === 'thinking');
  const details = thoughts.flatMap((thought) =>
    listAt(decodeSignature(name, 'reasoning_details', thought.signature)),
  );
  return {
    ...(details.length === 0 ? {} : { reasoning_details: details }),
    ...(thinkingField === undefined || !hasCalls
      ? {}
      : { [thinkingField]: thoughts.map(({ text }) => text).join('') }),
  };
};

/** Unsupported media follow in a user message after all tool messages, which must not be separated. */
const fromTools = ({ content }: ToolMessage, target: Target, { toolId }: WireNames): Messages => {
  const { takesToolMedia } = target.profile;
  const results = content.map((result): ChatCompletionMessageParam => {
    const resultContent = resultText(result);
    const media = takesToolMedia === true ? mediaOf(result.content) : [];
    // The types of the SDK only allow text.
    const withMedia: JsonRecord =
      media.length === 0 ? {} : { content: partsOf([textBlock(resultContent), ...media], target) };
    return {
      role: 'tool',
      tool_call_id: toolId(result.toolCallId),
      content: resultContent,
      ...withMedia,
    };
  });
  if (takesToolMedia === true) return results;
  const following = content.flatMap((result): readonly ContentBlock[] => {
    const media = mediaOf(result.content);
    const id = toolId(result.toolCallId);
    return media.length === 0 ? [] : [textBlock(`From the tool call ${id}:`), ...media];
  });
  return following.length === 0
    ? results
    : [...results, { role: 'user', content: partsOf(following, target) }];
};
