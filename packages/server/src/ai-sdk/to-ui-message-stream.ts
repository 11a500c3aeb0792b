import type { AgentEvent } from '@millrace/core';
import { checkOptions, isText, type Rule } from '@millrace/core/adapter';
import type { OperatorFunction } from 'rxjs';
import { createMasks, type MaskOptions, maskRules } from '../masks.js';
import { type ClientResultOptions, clientResultRules } from '../parts/client-results.js';
import { encodeParts } from '../parts/encode-parts.js';
import { type TicketOptions, ticketRules } from '../parts/with-tickets.js';
import { agentChunks } from './agent-chunks.js';
import { messageChunks } from './message-chunks.js';
import { type Reader, readers } from './readers.js';
import type { AiSdkVersion, CommonUiMessageChunk, UiMessageChunk } from './ui-message-chunk.js';

/** What a UI message stream says, and to whom. */
export interface UiMessageStreamOptions<Target extends AiSdkVersion = AiSdkVersion>
  extends MaskOptions, TicketOptions, ClientResultOptions {
  /** The major version of the AI SDK in the client. Default: 6. */
  readonly target?: Target;
  /** The id of the message in the client. A call that brings the results of its tools continues it. Default: the call's id. */
  readonly messageId?: string;
}

/**
 * Turns the events of a call into the chunks of an AI SDK UI message stream (protocol v1), from `start` to `finish`,
 * or `abort` where the call was aborted. Whatever fails, the stream ends with `error` and `finish`, and completes: it never
 * errors. The text of the last step that is not void is the text of the reply. Cold or hot
 * as the events are: a hot stream makes one message of each root call, and those of overlapping calls are mixed.
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
  return options.target === 7 ? chunksFor(readers[7], options) : chunksFor(readers[6], options);
}

const isVersion: Rule = [(value) => value === 6 || value === 7, '6 or 7'];

const rules: Readonly<Record<keyof UiMessageStreamOptions, Rule>> = {
  target: isVersion,
  messageId: isText,
  ...maskRules,
  ...ticketRules,
  ...clientResultRules,
};

const chunksFor = <Chunk>(
  reader: Reader<Chunk>,
  options: UiMessageStreamOptions,
): OperatorFunction<AgentEvent, Chunk | CommonUiMessageChunk> => {
  const masks = createMasks(options);
  return encodeParts<Chunk | CommonUiMessageChunk>(options, masks, (part) =>
    part.by.parentId === undefined
      ? messageChunks(part, options.messageId, reader, masks)
      : agentChunks(part, masks),
  );
};
