import type { AgentEvent } from 'millrace';
import { checkOptions, isText, type Rule } from 'millrace/values';
import type { OperatorFunction } from 'rxjs';
import { createMasks, type MaskOptions, maskRules } from '../masks.js';
import { type ClientResultOptions, clientResultRules } from '../parts/client-results.js';
import { encodeParts, type EncodingOptions } from '../parts/encode-parts.js';
import { type ApprovalTokenOptions, approvalTokenRules } from '../parts/with-approval-tokens.js';
import { agentChunks } from './agent-chunks.js';
import { messageChunks } from './message-chunks.js';
import { type VersionChunks, versions } from './version-chunks.js';
import type { AiSdkVersion, CommonUiMessageChunk, UiMessageChunk } from './ui-message-chunk.js';

/** Options of `toUiMessageStream`. */
export interface UiMessageStreamOptions<Target extends AiSdkVersion = AiSdkVersion>
  extends MaskOptions, ApprovalTokenOptions, ClientResultOptions {
  /** The major version of the AI SDK in the client. Default: 6. */
  readonly target?: Target | undefined;
  /** The client's id of the message. A call with results of client tools continues it. Default: the id of the call. */
  readonly messageId?: string | undefined;
}

/**
 * Encodes the events of a call as an AI SDK UI message stream (protocol v1), from `start` to `finish`, or to `abort`
 * for an aborted call. Never errors: after a failure the stream ends with `error` and `finish`, and completes. The text
 * of the last step that was not discarded is the text of the reply. As cold or hot as its source: on a hot stream, each
 * root call is a message of its own, and the chunks of overlapping calls interleave.
 */
export function toUiMessageStream(
  options?: UiMessageStreamOptions<6>,
): OperatorFunction<AgentEvent, UiMessageChunk>;
export function toUiMessageStream(
  options: UiMessageStreamOptions,
): OperatorFunction<AgentEvent, UiMessageChunk<7>>;
export function toUiMessageStream(
  options: UiMessageStreamOptions = {},
): OperatorFunction<AgentEvent, UiMessageChunk> | OperatorFunction<AgentEvent, UiMessageChunk<7>> {
  checkOptions('toUiMessageStream()', options, rules);
  return uiMessageChunks(options);
}

/** The same, and also for streams that end at approvals. */
export const uiMessageChunks = (
  options: UiMessageStreamOptions & Pick<EncodingOptions, 'asking'>,
):
  OperatorFunction<AgentEvent, UiMessageChunk> | OperatorFunction<AgentEvent, UiMessageChunk<7>> =>
  options.target === 7 ? chunksFor(versions[7], options) : chunksFor(versions[6], options);

const isVersion: Rule = [(value) => value === 6 || value === 7, '6 or 7'];

const rules: Readonly<Record<keyof UiMessageStreamOptions, Rule>> = {
  target: isVersion,
  messageId: isText,
  ...maskRules,
  ...approvalTokenRules,
  ...clientResultRules,
};

const chunksFor = <Chunk extends object>(
  reader: VersionChunks<Chunk>,
  options: Parameters<typeof uiMessageChunks>[0],
): OperatorFunction<AgentEvent, Chunk | CommonUiMessageChunk> => {
  const masks = createMasks(options);
  return encodeParts<Chunk | CommonUiMessageChunk>(options, masks, (part) =>
    part.by.parentId === undefined
      ? messageChunks(part, options, reader, masks)
      : agentChunks(part, masks),
  );
};
