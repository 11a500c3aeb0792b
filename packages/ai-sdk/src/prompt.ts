import {
  type AssistantBlock,
  type AssistantMessage,
  type ContentBlock,
  type Message,
  type ModelRequest,
  toolCallsOf,
  type ToolResultBlock,
} from 'millrace';
import { isRecord } from 'millrace/values';
import { type JsonRecord, withNamePrefix } from '@millrace/wire';
import { type MediaTaker, toFilePart, toResultPart } from './media-parts.js';
import { optionsBack, vendorPartBack } from './vendor-parts.js';

/** How names and ids of tool calls are written. */
export interface PromptNames {
  readonly toolName: (name: string) => string;
  readonly toolId: (id: string) => string;
}

/**
 * Maps the messages of a request to a prompt. It leaves out blank text, messages without parts, and thoughts and parts of
 * other vendors. Throws `invalidRequest` for media that the provider cannot take.
 */
export const toPrompt = (
  { system, messages }: Pick<ModelRequest, 'system' | 'messages'>,
  model: MediaTaker,
  names: PromptNames,
): readonly JsonRecord[] => {
  const calls = new Map(
    messages
      .filter((message) => message.role === 'assistant')
      .flatMap(toolCallsOf)
      .map(({ id, name }) => [id, name]),
  );
  const contentOf = (message: Message): readonly JsonRecord[] => {
    switch (message.role) {
      case 'user':
        return userParts(withNamePrefix(message), model);
      case 'assistant':
        return assistantParts(message, model, names);
      case 'tool':
        return message.content.map((result) =>
          toToolResult(result, calls.get(result.toolCallId) ?? 'unknown', model, names),
        );
    }
  };
  const isBlank = system === undefined || system.trim() === '';
  return [
    ...(isBlank ? [] : [{ role: 'system', content: system }]),
    ...messages.flatMap((message) => {
      const content = contentOf(message);
      return content.length === 0 ? [] : [{ role: message.role, content }];
    }),
  ];
};

/** A blank user message stays one: without it, the model would continue its last message. */
const userParts = (blocks: readonly ContentBlock[], model: MediaTaker): readonly JsonRecord[] => {
  const parts = blocks.flatMap((block) => contentParts(block, model));
  return parts.length === 0 ? [{ type: 'text', text: '(empty)' }] : parts;
};

const contentParts = (block: ContentBlock, model: MediaTaker): readonly JsonRecord[] => {
  if (block.type !== 'text') return [{ ...toFilePart(block, model), ...marked(block) }];
  return block.text.trim() === '' ? [] : [{ type: 'text', text: block.text, ...marked(block) }];
};

/** A cache mark in the fields of those providers that have one. Others ignore them. */
const marked = ({ cache }: ContentBlock): { readonly providerOptions?: JsonRecord } => {
  if (cache === undefined) return {};
  const ttl = cache === true ? {} : { ttl: cache };
  return {
    providerOptions: {
      anthropic: { cacheControl: { type: 'ephemeral', ...ttl } },
      bedrock: { cachePoint: { type: 'default' } },
    },
  };
};

const assistantParts = (
  { content }: AssistantMessage,
  model: MediaTaker,
  names: PromptNames,
): readonly JsonRecord[] =>
  content.flatMap((block, index): JsonRecord | readonly JsonRecord[] => {
    const next = content[index + 1];
    return assistantPart(block, next, model, names) ?? [];
  });

const assistantPart = (
  block: AssistantBlock,
  next: AssistantBlock | undefined,
  model: MediaTaker,
  { toolName, toolId }: PromptNames,
): JsonRecord | undefined => {
  const vendor = model.provider;
  switch (block.type) {
    case 'text': {
      const options = optionsBack(vendor, block.vendorData);
      const isBlank = block.text.trim() === '' && options.providerOptions === undefined;
      return isBlank ? undefined : { type: 'text', text: block.text, ...options };
    }
    case 'thinking': {
      const { signature, vendorData, text } = block;
      // A thought that another vendor signed is of no use here.
      const isForeign = (vendorData?.vendor ?? vendor) !== vendor || signature !== undefined;
      return isForeign
        ? undefined
        : { type: 'reasoning', text, ...optionsBack(vendor, vendorData) };
    }
    case 'tool_call': {
      const { id, name, input, vendorData } = block;
      const call = { type: 'tool-call', toolCallId: toolId(id), toolName: toolName(name), input };
      return { ...call, ...optionsBack(vendor, vendorData) };
    }
    case 'vendor':
      return vendorPartBack(vendor, block);
    default:
      return { ...toFilePart(block, model), ...metadataIn(vendor, next) };
  }
};

/** The metadata of a file, which is in the block that follows it. */
const metadataIn = (vendor: string, next: AssistantBlock | undefined): JsonRecord =>
  next?.type === 'vendor' &&
  next.kind === 'file-metadata' &&
  next.vendor === vendor &&
  isRecord(next.data)
    ? { providerOptions: next.data }
    : {};

const toToolResult = (
  result: ToolResultBlock,
  name: string,
  model: MediaTaker,
  { toolName, toolId }: PromptNames,
): JsonRecord => ({
  type: 'tool-result',
  toolCallId: toolId(result.toolCallId),
  toolName: toolName(name),
  output: toOutput(result, model),
});

const toOutput = ({ content, isError, note }: ToolResultBlock, model: MediaTaker): JsonRecord => {
  const blocks: readonly ContentBlock[] =
    note === undefined ? content : [{ type: 'text', text: note }, ...content];
  if (blocks.every((block) => block.type === 'text')) {
    const value = blocks.map(({ text }) => text).join(note === undefined ? '' : '\n');
    return { type: isError ? 'error-text' : 'text', value };
  }
  const failed = isError ? [{ type: 'text', text: 'The tool failed.' }] : [];
  const value = blocks.map((block) =>
    block.type === 'text' ? { type: 'text', text: block.text } : toResultPart(block, model),
  );
  return { type: 'content', value: [...failed, ...value] };
};
