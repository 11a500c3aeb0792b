import type { EndReason } from '@millrace/core';
import type { Notice } from '../parts/part.js';
import { denied } from '../tool-result.js';
import type {
  AiSdkVersion,
  UiMessageChunk7,
  CommonUiMessageChunk,
  ReplyMetadata,
} from './ui-message-chunk.js';

/** What readers of one version take otherwise than those of another. */
export interface Reader<Chunk> {
  /** A message that has been shown is void. */
  discarded(messageId: string): readonly Chunk[];
  /** A use of a tool was not allowed, and has not been run. */
  denied(toolCallId: string): readonly Chunk[];
  steered(notice: Extract<Notice, { name: 'steered' }>): readonly Chunk[];
  finished(reason: EndReason, messageMetadata: ReplyMetadata): Chunk;
}

/** The finish reasons of the AI SDK, by end reason. Others are `other`. */
const reasons = new Map<string, 'stop' | 'length' | 'tool-calls' | 'content-filter'>([
  ['answer', 'stop'],
  ['toolFinal', 'stop'],
  ['maxIterations', 'stop'],
  ['budget', 'stop'],
  ['suspended', 'tool-calls'],
  ['truncated', 'length'],
  ['refused', 'content-filter'],
]);

const finish = (reason: EndReason, messageMetadata: ReplyMetadata): CommonUiMessageChunk => ({
  type: 'finish',
  finishReason: reasons.get(reason) ?? 'other',
  messageMetadata,
});

/** All that is different between them. */
export const readers: {
  readonly 6: Reader<CommonUiMessageChunk>;
  readonly 7: Reader<CommonUiMessageChunk | UiMessageChunk7>;
} = {
  6: {
    discarded: (messageId) => [{ type: 'data-discarded', id: messageId, data: { messageId } }],
    // A denied part without an approval breaks the SDK's types and its validation, and only a client can approve here.
    denied: (toolCallId) => [
      {
        type: 'tool-output-error',
        toolCallId,
        errorText: denied,
        providerMetadata: { millrace: { denied: true } },
      },
    ],
    steered: ({ messageId, text }) => [
      { type: 'data-steered', id: messageId, data: { messageId, text } },
    ],
    finished: finish,
  },
  7: {
    discarded: () => [{ type: 'reset-step' }],
    denied: (toolCallId) => [
      { type: 'tool-approval-request', approvalId: toolCallId, toolCallId, isAutomatic: true },
      { type: 'tool-approval-response', approvalId: toolCallId, approved: false },
      { type: 'tool-output-denied', toolCallId },
    ],
    steered: ({ messageId, text }) => [
      { type: 'steering-message', id: messageId, parts: [{ type: 'text', text }] },
    ],
    finished: (reason, messageMetadata) =>
      reason === 'interrupted'
        ? { type: 'finish', finishReason: 'interrupted', messageMetadata }
        : finish(reason, messageMetadata),
  },
} satisfies Readonly<Record<AiSdkVersion, Reader<CommonUiMessageChunk | UiMessageChunk7>>>;
