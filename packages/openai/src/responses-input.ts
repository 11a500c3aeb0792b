import {
  type AssistantBlock,
  type AssistantMessage,
  type ContentBlock,
  type Message,
  type TextBlock,
  type ToolCallBlock,
  toolCallsOf,
  type ToolResultBlock,
} from 'millrace';
import { isRecord } from 'millrace/values';
import {
  decodeSignature,
  type JsonRecord,
  listAt,
  type Serializer,
  textAt,
  type WireNames,
  withNamePrefix,
} from '@millrace/wire';
import type { ResponseInputContent, ResponseInputItem } from 'openai/resources/responses/responses';
import { actionResult, besideAction } from './action-results.js';
import { contentOf, mediaOf, resultText } from './content.js';
import { textOfInput } from './custom-tools.js';
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

/** The types of the SDK do not know every item that a vendor wants back. */
type InputItem = ResponseInputItem | JsonRecord;

/**
 * Creates a serializer of messages as input items of the Responses API, as the items of a JSON array. It throws for a
 * block that cannot be sent.
 */
export const responsesInput = (target: ResponsesTarget): Serializer<string> => {
  const write: Serializer<JsonItems> = (messages, naming) =>
    joinItems(
      messages
        .flatMap((message) => fromMessage(message, target, naming))
        .map((item) => toJsonItems(textAt(item, 'type') || 'message', item)),
    );
  const writeAll = pagedSerializer(write, (passages) => joinItems(passages));
  return (messages, naming) => writeAll(messages, naming).json;
};

const fromMessage = (
  message: Message,
  target: ResponsesTarget,
  naming: WireNames,
): readonly InputItem[] => {
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: partsOf(withNamePrefix(message), target) }];
    case 'assistant':
      return fromAssistant(message, target, naming);
    case 'tool':
      return message.content.flatMap((result) => resultItems(result, target, naming));
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
  if (type === 'audio') throw unsendable(type, model, audioRefusal);
  if (type === 'image') {
    const address = source.kind === 'id' ? { file_id: source.id } : { image_url: addressOf(block) };
    return { type: 'input_image', detail: block.detail ?? 'auto', ...address };
  }
  if (source.kind === 'id') return { type: 'input_file', file_id: source.id };
  return source.kind === 'url'
    ? { type: 'input_file', file_url: source.url }
    : { type: 'input_file', filename: fileName(block), file_data: addressOf(block) };
};

/** https://developers.openai.com/api/docs/guides/audio */
const audioRefusal = 'the Responses API does not accept audio, but openai.chat(…) does';

const fromAssistant = (
  { content }: AssistantMessage,
  target: ResponsesTarget,
  naming: WireNames,
): readonly InputItem[] => {
  const { profile } = target;
  const items = content.flatMap((block, index): readonly InputItem[] => {
    switch (block.type) {
      case 'text':
        return block.text === '' ? [] : [textItem(block, content[index - 1], profile)];
      case 'thinking': {
        const item = decodeSignature(profile.name, 'item', block.signature);
        return isItem(item) && isSendable(item, target) ? [item] : [];
      }
      case 'tool_call':
        return [callItem(block, profile, naming)];
      case 'vendor':
        return block.vendor === profile.name && isItem(block.data) ? [block.data] : [];
      default:
        return [];
    }
  });
  // Reasoning is rejected without the item that follows it.
  const end = items.findLastIndex((item) => textAt(item, 'type') !== 'reasoning');
  return items.slice(0, end + 1);
};

/** A tool call, in the form in which the vendor made it. */
const callItem = (
  block: ToolCallBlock,
  profile: Profile,
  { toolName, toolId }: WireNames,
): InputItem => {
  const { id, name, input } = block;
  const made = itemOfCall(block, profile);
  const call = { call_id: toolId(id), name: toolName(name) };
  if (made === undefined || made['type'] === 'function_call') {
    return { type: 'function_call', ...made, ...call, arguments: JSON.stringify(input) };
  }
  return made['type'] === 'custom_tool_call'
    ? { type: 'custom_tool_call', ...call, input: textOfInput(input) }
    : made;
};

/** The names of the functions that were called without a namespace: by models of other vendors, or when they were not deferred. */
export const calledWithoutNamespace = (
  messages: readonly Message[],
  profile: Profile,
): ReadonlySet<string> =>
  new Set(
    messages
      .flatMap((message) => (message.role === 'assistant' ? toolCallsOf(message) : []))
      .filter((call) => textAt(itemOfCall(call, profile), 'namespace') === '')
      .map(({ name }) => name),
  );

/** The item that a tool call was; of a function, only its namespace. */
const itemOfCall = ({ vendorData }: ToolCallBlock, { name }: Profile): JsonRecord | undefined =>
  vendorData?.vendor === name && isItem(vendorData.data) ? vendorData.data : undefined;

/** Text, with the phase and the sources that the vendor gave it. */
const textItem = (
  { text, phase: own, citations = [] }: TextBlock,
  before: AssistantBlock | undefined,
  { name }: Profile,
): InputItem => {
  const earlier =
    before?.type === 'thinking' ? decodeSignature(name, 'phase', before.signature) : undefined;
  const phase = own ?? earlier;
  const annotations = citations.flatMap(({ vendorData }) =>
    vendorData?.vendor === name ? [vendorData.data] : [],
  );
  const content = annotations.length === 0 ? text : [{ type: 'output_text', text, annotations }];
  const item: JsonRecord = { role: 'assistant', content };
  // The types of the SDK want the ID of a stored message next to annotations.
  return phase === 'commentary' || phase === 'final_answer' ? { ...item, phase } : item;
};

const isItem = (value: unknown): value is JsonRecord => textAt(value, 'type') !== '';

/** Reasoning that the vendor did not store needs its content, encrypted if the model encrypts it. */
const isSendable = (
  item: JsonRecord,
  { profile: { encryptsReasoning }, model, store }: ResponsesTarget,
): boolean => {
  if (item['type'] !== 'reasoning' || store) return true;
  return encryptsReasoning?.test(model) === true
    ? textAt(item, 'encrypted_content') !== ''
    : listAt(item, 'content').length > 0;
};

/** A result, in the form that belongs to its call. */
const resultItems = (
  result: ToolResultBlock,
  target: ResponsesTarget,
  { toolId, callOf }: WireNames,
): readonly InputItem[] => {
  const call = callOf?.(result.toolCallId);
  const item = call === undefined ? undefined : itemOfCall(call, target.profile);
  const type = textAt(item, 'type');
  const written = isRecord(item) ? actionResult(item, result) : undefined;
  if (isRecord(item) && written !== undefined) {
    const rest = besideAction(item, result);
    return rest.length === 0
      ? [written]
      : [written, { role: 'user', content: partsOf(rest, target) }];
  }
  const output = outputOf(result, target);
  const call_id = toolId(result.toolCallId);
  return type === 'custom_tool_call'
    ? [{ type: 'custom_tool_call_output', call_id, output }]
    : [{ type: 'function_call_output', call_id, output }];
};

const outputOf = (result: ToolResultBlock, target: ResponsesTarget) => {
  const text = resultText(result);
  const media = mediaOf(result.content);
  return media.length === 0 ? text : partsOf([{ type: 'text', text }, ...media], target);
};
