import { type AGUIEvent, type ContentPart, EventType } from '@ag-ui/core';
import { type ContentBlock, textOf, type ToolResultBlock } from 'millrace';
import { toJsonPatch } from 'millrace/sessions';
import { defined } from 'millrace/values';
import { isForClient } from '../inbound.js';
import type { Masks } from '../masks.js';
import { isMedia } from '../parts/shown-message.js';
import type { MediaBlock, Notice, Part, PartOf, ToolCallRef } from '../parts/part.js';
import { citationData } from '../parts/source.js';
import { plainJson } from '../plain-json.js';
import { denied, notRun } from '../tool-result.js';
import { millrace, resultIdOf } from './metadata.js';

/** The sub-agent that an event comes from; empty for the outermost agent. */
export interface Tag {
  readonly subagentRunId?: string;
}

export const partEvents = (
  part: Exclude<Part, PartOf<'callStart' | 'callEnd' | 'asks'>>,
  tag: Tag,
  masks: Masks,
): readonly AGUIEvent[] => {
  switch (part.type) {
    case 'stepStart':
      return [{ type: EventType.STEP_STARTED, stepName: part.step, ...tag }];
    case 'stepEnd':
      return [{ type: EventType.STEP_FINISHED, stepName: part.step, ...tag }];
    case 'blockStart':
    case 'blockDelta':
    case 'blockEnd':
      return part.kind === 'text' ? [textEvent(part, tag)] : thinkingEvents(part, tag);
    case 'toolStart': {
      const { id: toolCallId, name: toolCallName, messageId: parentMessageId } = part;
      return [
        { type: EventType.TOOL_CALL_START, toolCallId, toolCallName, parentMessageId, ...tag },
      ];
    }
    case 'toolDelta':
      return [{ type: EventType.TOOL_CALL_ARGS, toolCallId: part.id, delta: part.delta, ...tag }];
    case 'toolInput':
      return [
        { type: EventType.TOOL_CALL_END, toolCallId: part.id, ...tag },
        ...(part.isEdited ? [edited(part, tag)] : []),
      ];
    case 'toolEdit':
      return [edited(part, tag)];
    case 'toolProgress': {
      const value = { toolCallId: part.id, value: plainJson(part.value) };
      return [custom('tool_progress', value, tag)];
    }
    case 'toolReset':
      return [];
    case 'toolEnd':
      return [
        ...(part.isWhole
          ? []
          : [{ type: EventType.TOOL_CALL_END, toolCallId: part.id, ...tag } as const]),
        resultEvent(part, tag, masks),
      ];
    case 'media': {
      const { messageId, block } = part;
      return [custom('media', { messageId, part: mediaPart(block) }, tag)];
    }
    case 'source': {
      const { id, messageId, citation } = part;
      return [custom('source', { id, messageId, citation: citationData(citation) }, tag)];
    }
    case 'voided':
      return [custom('discarded', { messageId: part.messageId }, tag)];
    case 'notice': {
      const { notice } = part;
      const isHidden = notice.name === 'suspended' && !isForClient(notice);
      return isHidden ? [] : [noticeEvent(notice, tag, masks)];
    }
  }
};

type BlockPart = PartOf<'blockStart' | 'blockDelta' | 'blockEnd'>;

/** Text that continues after another part starts its message again under the same id, which appends to it. */
const textEvent = (part: BlockPart, tag: Tag): AGUIEvent => {
  const { messageId } = part;
  switch (part.type) {
    case 'blockStart':
      return { type: EventType.TEXT_MESSAGE_START, messageId, role: 'assistant', ...tag };
    case 'blockDelta':
      return { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: part.delta, ...tag };
    case 'blockEnd':
      return { type: EventType.TEXT_MESSAGE_END, messageId, ...tag };
  }
};

const thinkingEvents = (part: BlockPart, tag: Tag): readonly AGUIEvent[] => {
  const messageId = part.id;
  switch (part.type) {
    case 'blockStart':
      return [
        { type: EventType.REASONING_START, messageId, ...tag },
        { type: EventType.REASONING_MESSAGE_START, messageId, role: 'reasoning', ...tag },
      ];
    case 'blockDelta':
      return [{ type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta: part.delta, ...tag }];
    case 'blockEnd':
      return [
        { type: EventType.REASONING_MESSAGE_END, messageId, ...tag },
        { type: EventType.REASONING_END, messageId, ...tag },
      ];
  }
};

const custom = (name: string, value: unknown, tag: Tag): AGUIEvent => ({
  type: EventType.CUSTOM,
  name: `millrace.${name}`,
  value,
  ...tag,
});

const edited = ({ id, name, input }: PartOf<'toolInput' | 'toolEdit'>, tag: Tag): AGUIEvent =>
  custom('tool_edited', { toolCallId: id, toolCallName: name, input }, tag);

const noticeEvent = (notice: Notice, tag: Tag, masks: Masks): AGUIEvent => {
  switch (notice.name) {
    case 'retry': {
      const { attempt, attempts, waitMs, error } = notice;
      return custom('retry', { attempt, attempts, waitMs, code: error.code }, tag);
    }
    case 'fallback':
      return custom('fallback', { code: notice.error.code }, tag);
    case 'queued':
      return custom('queued', { ahead: notice.ahead }, tag);
    case 'waiting':
      return custom('waiting', { waitedMs: notice.waitedMs }, tag);
    case 'sources':
      return custom('sources', notice.sources, tag);
    case 'state': {
      const { of: name, state } = notice;
      if ('subagentRunId' in tag) return custom('state', { name, state: plainJson(state) }, tag);
      const patch = toJsonPatch([{ op: 'add', path: [name], value: plainJson(state) }]);
      return { type: EventType.STATE_DELTA, delta: [...patch] };
    }
    case 'steered': {
      const { messageId, text } = notice;
      return custom('steered', { messageId, text }, tag);
    }
    case 'approvalRequested': {
      const { inputSchema, approvalToken } = notice;
      const schema = inputSchema && { inputSchema };
      return custom('approval_requested', { ...callOf(notice), ...approvalToken, ...schema }, tag);
    }
    case 'approvalDecided': {
      const { approved, asked } = notice;
      const decided = { approved, ...masks.denial(notice), ...defined({ asked }) };
      return custom('approval_decided', { ...callOf(notice), ...decided }, tag);
    }
    case 'suspended':
      return custom('suspended', { ...callOf(notice), request: plainJson(notice.request) }, tag);
    case 'uncertain':
    case 'repaired':
      return custom(notice.name, callOf(notice), tag);
  }
};

const callOf = ({ toolCallId, toolName: toolCallName, localId }: ToolCallRef) => ({
  toolCallId,
  toolCallName,
  localId,
});

const resultEvent = ({ id, outcome }: PartOf<'toolEnd'>, tag: Tag, masks: Masks): AGUIEvent => {
  const { status } = outcome;
  const result = {
    type: EventType.TOOL_CALL_RESULT,
    messageId: resultIdOf(id),
    toolCallId: id,
    role: 'tool',
    ...tag,
  } as const;
  switch (outcome.status) {
    case 'done': {
      const { result: block, ms } = outcome.event;
      const metadata = millrace({ status, ms, ...detailsOf(block) });
      return { ...result, content: contentOf(block.content), metadata };
    }
    case 'failed': {
      const { ms } = outcome.event;
      return {
        ...result,
        content: masks.toolError(outcome.event),
        metadata: millrace({ status, ms }),
      };
    }
    case 'denied':
      return { ...result, content: denied, metadata: millrace({ status }) };
    case 'notRun':
      return { ...result, content: notRun, metadata: millrace({ status }) };
  }
};

const detailsOf = ({ details }: ToolResultBlock) =>
  details === undefined ? {} : { details: plainJson(details) };

const contentOf = (content: readonly ContentBlock[]): string | ContentPart[] =>
  content.every(({ type }) => type === 'text')
    ? textOf({ content })
    : content.map((block): ContentPart => {
        if (block.type === 'text') return { type: 'text', text: block.text };
        return isMedia(block) ? mediaPart(block) : { type: 'text', text: `[${block.type}]` };
      });

export const mediaPart = (block: MediaBlock): ContentPart => {
  const type = block.type === 'file' ? 'document' : block.type;
  const { source } = block;
  if (source.kind === 'base64') {
    return { type, source: { type: 'data', value: source.data, mimeType: source.mediaType } };
  }
  const { url, mediaType } = source;
  return {
    type,
    source: {
      type: 'url',
      value: url,
      ...(mediaType === undefined ? {} : { mimeType: mediaType }),
    },
  };
};
