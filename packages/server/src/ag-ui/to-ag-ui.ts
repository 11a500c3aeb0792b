import {
  type AGUIEvent,
  EventType,
  type Interrupt,
  PROTOCOL_VERSION,
  type TokenUsage,
} from '@ag-ui/core';
import type { AgentEvent, Usage } from 'millrace';
import { checkOptions, isText, type Rule } from 'millrace/values';
import type { OperatorFunction } from 'rxjs';
import { createMasks, type MaskOptions, maskRules, type Masks } from '../masks.js';
import { type ClientResultOptions, clientResultRules } from '../parts/client-results.js';
import { encodeParts, type EncodingOptions } from '../parts/encode-parts.js';
import type { AskedApproval, CallRef, Part, PartOf } from '../parts/part.js';
import { shownCost } from '../parts/shown-cost.js';
import { type ApprovalTokenOptions, approvalTokenRules } from '../parts/with-approval-tokens.js';
import { plainJson } from '../plain-json.js';
import { millrace } from './metadata.js';
import { partEvents } from './part-events.js';

/** Options of `toAgUi`. */
export interface AgUiOptions extends MaskOptions, ApprovalTokenOptions, ClientResultOptions {
  /** The id of the conversation. Default: the id of the session, else of the call. */
  readonly threadId?: string | undefined;
  /** The client's id of the run. Default: the id of the call. */
  readonly runId?: string | undefined;
}

/**
 * Encodes the events of a call as AG-UI 1.0 events, from `RUN_STARTED` to `RUN_FINISHED`. Never errors: after a failure
 * the stream ends with `RUN_ERROR` and completes. A call that was interrupted, stopped or aborted becomes a cancelled
 * run. Events of sub-agents carry a `subagentRunId`. As cold or hot as its source: on a hot stream, each root call is a
 * run of its own, and the events of overlapping calls interleave, which no client can read.
 */
export const toAgUi = (options: AgUiOptions = {}): OperatorFunction<AgentEvent, AGUIEvent> => {
  checkOptions('toAgUi()', options, rules);
  return agUiEvents(options);
};

/** The same, and also for streams that end at approvals. */
export const agUiEvents = (
  options: AgUiOptions & Pick<EncodingOptions, 'asking'>,
): OperatorFunction<AgentEvent, AGUIEvent> => {
  const masks = createMasks(options);
  return encodeParts(options, masks, (part) =>
    part.by.parentId === undefined
      ? rootEvents(part, options, masks)
      : subagentEvents(part, part.by.parentId, masks),
  );
};

const rules: Readonly<Record<keyof AgUiOptions, Rule>> = {
  threadId: isText,
  runId: isText,
  ...maskRules,
  ...approvalTokenRules,
  ...clientResultRules,
};

const rootEvents = (part: Part, options: AgUiOptions, masks: Masks): readonly AGUIEvent[] => {
  const { callId, sessionId } = part.by;
  const { runId = callId, threadId = sessionId ?? callId } = options;
  switch (part.type) {
    case 'callStart':
      return [{ type: EventType.RUN_STARTED, threadId, runId, protocolVersion: PROTOCOL_VERSION }];
    case 'callEnd':
      return [runEnd(part, threadId, runId, masks)];
    case 'asks': {
      const outcome = { type: 'interrupt', interrupts: part.asked.map(interruptOf) } as const;
      return [{ type: EventType.RUN_FINISHED, threadId, runId, outcome }];
    }
    default:
      return partEvents(part, {}, masks);
  }
};

const runEnd = (
  { end, usage }: PartOf<'callEnd'>,
  threadId: string,
  runId: string,
  masks: Masks,
): AGUIEvent => {
  const spent = usageOf(usage);
  if (end.status === 'failed') {
    const { code } = end.error;
    return { type: EventType.RUN_ERROR, message: masks.error(end.error), code, ...spent };
  }
  const finished = { type: EventType.RUN_FINISHED, threadId, runId, ...spent } as const;
  if (end.status === 'aborted') {
    return {
      ...finished,
      outcome: { type: 'cancelled' },
      metadata: millrace({ reason: 'aborted' }),
    };
  }
  const { reason, iterations, output } = end.reply;
  const metadata = millrace({ reason, iterations, ...shownCost(end.reply) });
  if (reason === 'interrupted' || reason === 'stopped') {
    return { ...finished, outcome: { type: 'cancelled' }, metadata };
  }
  return {
    ...finished,
    outcome: {
      type: 'success',
      ...(end.pending.length > 0 && { pendingToolCallIds: [...end.pending] }),
    },
    metadata,
    ...(output === undefined ? {} : { result: plainJson(output) }),
  };
};

const interruptOf = ({
  questionId,
  toolCallId,
  toolName,
  expiresAt,
}: AskedApproval): Interrupt => ({
  id: questionId,
  reason: 'tool_approval',
  toolCallId,
  message: `May the tool '${toolName}' run?`,
  expiresAt: new Date(expiresAt).toISOString(),
  responseSchema: {
    type: 'object',
    properties: {
      approved: { type: 'boolean' },
      reason: { type: 'string', description: 'For the model.' },
      input: { type: 'object', description: 'Arguments to run it with.' },
    },
    required: ['approved'],
  },
});

/** Totals include cached tokens. Omits zero counts, as the provider may not have reported them. */
const usageOf = (usage: Usage): { readonly usage?: TokenUsage[] } => {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const input = inputTokens + cacheReadTokens + cacheWriteTokens;
  if (input + outputTokens === 0) return {};
  return {
    usage: [
      {
        inputTokens: input,
        outputTokens,
        totalTokens: input + outputTokens,
        ...(cacheReadTokens === 0 ? {} : { cachedInputTokens: cacheReadTokens }),
        ...(cacheWriteTokens === 0 ? {} : { cacheWriteInputTokens: cacheWriteTokens }),
      },
    ],
  };
};

const subagentEvents = (part: Part, parentId: string, masks: Masks): readonly AGUIEvent[] => {
  const subagentRunId = part.by.callId;
  switch (part.type) {
    case 'callStart':
      return [{ type: EventType.SUBAGENT_STARTED, subagentRunId, ...agentOf(part.by, parentId) }];
    case 'callEnd':
      return [endEvent(part, subagentRunId, masks)];
    case 'asks':
      return [];
    default:
      return partEvents(part, { subagentRunId }, masks);
  }
};

const agentOf = ({ agent, toolCallId }: CallRef, parentId: string) => ({
  name: agent.at(-1) ?? '',
  ...(agent.length > 2 ? { parentSubagentRunId: parentId } : {}),
  ...(toolCallId === undefined ? {} : { parentToolCallId: toolCallId }),
});

const endEvent = ({ end }: PartOf<'callEnd'>, subagentRunId: string, masks: Masks): AGUIEvent => {
  if (end.status === 'replied') {
    const { reason, output } = end.reply;
    return {
      type: EventType.SUBAGENT_FINISHED,
      subagentRunId,
      metadata: millrace({ reason }),
      ...(output === undefined ? {} : { result: plainJson(output) }),
    };
  }
  const { error } = end;
  return {
    type: EventType.SUBAGENT_ERROR,
    subagentRunId,
    message: error === undefined ? 'The request was cancelled.' : masks.error(error),
    code: error?.code ?? 'aborted',
  };
};
