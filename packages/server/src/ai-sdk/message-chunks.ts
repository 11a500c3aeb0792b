import type { Citation, MillraceError } from 'millrace';
import type { Masks } from '../masks.js';
import type { Asking, MediaBlock, Notice, Part, PartOf, ToolOutcome } from '../parts/part.js';
import { shownCost } from '../parts/shown-cost.js';
import { citationData, linkOf } from '../parts/source.js';
import { plainJson } from '../plain-json.js';
import { notRun, outputOf } from '../tool-result.js';
import type { VersionChunks } from './version-chunks.js';
import { toolNoticeChunks } from './tool-notice-chunks.js';
import type { CommonUiMessageChunk, PartMetadata, SourceChunk } from './ui-message-chunk.js';

/** Encodes a part of the outermost agent. */
export const messageChunks = <Chunk>(
  part: Part,
  {
    messageId,
    asking,
  }: { readonly messageId?: string | undefined; readonly asking?: Asking | undefined },
  reader: VersionChunks<Chunk>,
  masks: Masks,
): readonly (Chunk | CommonUiMessageChunk)[] => {
  switch (part.type) {
    case 'callStart':
      return [{ type: 'start', messageId: messageId ?? part.by.callId }];
    case 'callEnd':
      return endOf(part, reader, masks);
    case 'asks':
      return [
        ...part.asked.map(({ toolCallId, questionId }) => {
          const request = { approvalId: questionId, toolCallId };
          return { type: 'tool-approval-request', ...request } as const;
        }),
        { type: 'finish', finishReason: 'tool-calls' },
      ];
    case 'stepStart':
      return part.isContinued === true ? [] : [{ type: 'start-step' }];
    case 'stepEnd':
      return [{ type: 'finish-step' }];
    case 'blockStart': {
      const type = part.kind === 'text' ? 'text-start' : 'reasoning-start';
      return [{ type, id: part.id, providerMetadata: metadataOf(part) }];
    }
    case 'blockDelta': {
      const type = part.kind === 'text' ? 'text-delta' : 'reasoning-delta';
      return [{ type, id: part.id, delta: part.delta }];
    }
    case 'blockEnd':
      return [{ type: part.kind === 'text' ? 'text-end' : 'reasoning-end', id: part.id }];
    case 'toolStart':
    case 'toolDelta':
    case 'toolInput':
    case 'toolEdit':
    case 'toolReset':
    case 'toolProgress':
    case 'toolEnd':
      return toolChunks(part, asking, reader, masks);
    case 'media':
      return [{ type: 'file', ...fileOf(part.block), providerMetadata: metadataOf(part) }];
    case 'source':
      return [sourceOf(part.citation, part.id, part)];
    case 'voided':
      return reader.discarded(part.messageId);
    case 'notice':
      return noticeOf(part.notice, reader, masks);
  }
};

type ToolPart = PartOf<
  'toolStart' | 'toolDelta' | 'toolInput' | 'toolEdit' | 'toolReset' | 'toolProgress' | 'toolEnd'
>;

const toolChunks = <Chunk>(
  part: ToolPart,
  asking: Asking | undefined,
  reader: VersionChunks<Chunk>,
  masks: Masks,
): readonly (Chunk | CommonUiMessageChunk)[] => {
  switch (part.type) {
    case 'toolStart': {
      const { id: toolCallId, name: toolName } = part;
      const providerMetadata = metadataOf(part);
      return [{ type: 'tool-input-start', toolCallId, toolName, providerMetadata }];
    }
    case 'toolDelta':
      return [{ type: 'tool-input-delta', toolCallId: part.id, inputTextDelta: part.delta }];
    case 'toolInput':
    case 'toolEdit':
    case 'toolReset': {
      const { id: toolCallId, name: toolName, input } = part;
      return [{ type: 'tool-input-available', toolCallId, toolName, input }];
    }
    case 'toolProgress': {
      const output = plainJson(part.value);
      return [{ type: 'tool-output-available', toolCallId: part.id, output, preliminary: true }];
    }
    case 'toolEnd':
      // The client already shows the approval that was denied.
      if (part.outcome.status === 'denied' && asking?.answered.includes(part.id) === true) {
        return [{ type: 'tool-output-denied', toolCallId: part.id }];
      }
      return outcomeOf(part.id, part.outcome, reader, masks);
  }
};

/** Encodes a source: a page as a link, anything else as a document. */
export const sourceOf = (
  citation: Citation,
  sourceId: string,
  owner: { readonly messageId: string },
): SourceChunk => {
  const { title, fileId, location } = citation;
  const url = linkOf(citation);
  const { millrace } = metadataOf(owner);
  const providerMetadata = { millrace: { ...millrace, citation: citationData(citation) } };
  const named = title === undefined ? {} : { title };
  return url === undefined
    ? {
        type: 'source-document',
        sourceId,
        mediaType: location?.unit === 'page' ? 'application/pdf' : 'text/plain',
        title: title ?? fileId ?? 'Document',
        providerMetadata,
      }
    : { type: 'source-url', sourceId, url, ...named, providerMetadata };
};

const metadataOf = ({ messageId }: { readonly messageId: string }): PartMetadata => ({
  millrace: { messageId },
});

const outcomeOf = <Chunk>(
  toolCallId: string,
  outcome: ToolOutcome,
  reader: VersionChunks<Chunk>,
  masks: Masks,
): readonly (Chunk | CommonUiMessageChunk)[] => {
  switch (outcome.status) {
    case 'done':
      return [
        { type: 'tool-output-available', toolCallId, output: outputOf(outcome.event.result) },
      ];
    case 'failed': {
      const errorText = masks.toolError(outcome.event);
      return [{ type: 'tool-output-error', toolCallId, errorText }];
    }
    case 'denied':
      return reader.denied(toolCallId);
    case 'notRun':
      return [{ type: 'tool-output-error', toolCallId, errorText: notRun }];
  }
};

const endOf = <Chunk>(
  { end, usage }: PartOf<'callEnd'>,
  reader: VersionChunks<Chunk>,
  masks: Masks,
): readonly (Chunk | CommonUiMessageChunk)[] => {
  switch (end.status) {
    case 'replied': {
      const { id, output, reason, iterations } = end.reply;
      const shown: readonly CommonUiMessageChunk[] =
        output === undefined ? [] : [{ type: 'data-output', id, data: plainJson(output) }];
      return [
        ...shown,
        reader.finished(reason, { reason, iterations, usage, ...shownCost(end.reply) }),
      ];
    }
    case 'failed':
      return [
        { type: 'message-metadata', messageMetadata: { error: metadataOfError(end.error) } },
        { type: 'error', errorText: masks.error(end.error) },
        { type: 'finish', finishReason: 'error', messageMetadata: { usage } },
      ];
    case 'aborted':
      return [
        end.error === undefined
          ? { type: 'abort' }
          : { type: 'abort', reason: masks.error(end.error) },
      ];
  }
};

const metadataOfError = ({ code, retryable }: MillraceError) => ({ code, retryable });

const noticeOf = <Chunk>(
  notice: Notice,
  reader: VersionChunks<Chunk>,
  masks: Masks,
): readonly (Chunk | CommonUiMessageChunk)[] => {
  switch (notice.name) {
    case 'retry': {
      const { attempt, attempts, waitMs, error } = notice;
      const data = { attempt, attempts, waitMs, code: error.code };
      return [{ type: 'data-retry', data, transient: true }];
    }
    case 'fallback':
      return [{ type: 'data-fallback', data: { code: notice.error.code }, transient: true }];
    case 'queued':
      return [{ type: 'data-queued', data: { ahead: notice.ahead }, transient: true }];
    case 'waiting':
      return [{ type: 'data-waiting', data: { waitedMs: notice.waitedMs }, transient: true }];
    case 'sources':
      return [{ type: 'data-sources', data: notice.sources }];
    case 'state':
      return [
        {
          type: 'data-state',
          id: notice.of,
          data: { name: notice.of, state: plainJson(notice.state) },
        },
      ];
    case 'steered':
      return reader.steered(notice);
    case 'approvalRequested':
    case 'approvalDecided':
    case 'suspended':
    case 'uncertain':
      return toolNoticeChunks(notice, masks);
    case 'repaired': {
      const { name: _, ...data } = notice;
      return [{ type: 'data-repaired', data, transient: true }];
    }
  }
};

export const fileOf = ({ type, source }: MediaBlock): { url: string; mediaType: string } =>
  source.kind === 'base64'
    ? { url: `data:${source.mediaType};base64,${source.data}`, mediaType: source.mediaType }
    : { url: source.url, mediaType: source.mediaType ?? unknownTypes[type] };

const unknownTypes = { image: 'image/*', audio: 'audio/*', file: 'application/octet-stream' };
