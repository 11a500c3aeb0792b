import type { Reply } from 'millrace';
import type { Notice } from '../parts/part.js';
import { denied } from '../tool-result.js';
import type {
  AiSdkVersion,
  UiMessageChunk7,
  CommonUiMessageChunk,
  ReplyMetadata,
} from './ui-message-chunk.js';

/** The chunks that differ between versions of the AI SDK. */
export interface VersionChunks<Chunk> {
  /** Retracts a message that was shown. */
  discarded(messageId: string): readonly Chunk[];
  /** A tool call was denied and did not run. */
  denied(toolCallId: string): readonly Chunk[];
  steered(notice: Extract<Notice, { name: 'steered' }>): readonly Chunk[];
  finished(reason: Reply['reason'], messageMetadata: ReplyMetadata): Chunk;
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

const finish = (reason: Reply['reason'], messageMetadata: ReplyMetadata): CommonUiMessageChunk => ({
  type: 'finish',
  finishReason: reasons.get(reason) ?? 'other',
  messageMetadata,
});

export const versions: {
  readonly 6: VersionChunks<CommonUiMessageChunk>;
  readonly 7: VersionChunks<CommonUiMessageChunk | UiMessageChunk7>;
} = {
  6: {
    discarded: (messageId) => [{ type: 'data-discarded', id: messageId, data: { messageId } }],
    // In version 6 only a client can create an approval, and a denied part without one fails the SDK's validation.
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
} satisfies Readonly<Record<AiSdkVersion, VersionChunks<CommonUiMessageChunk | UiMessageChunk7>>>;
