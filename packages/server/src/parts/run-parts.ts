import { addUsage, type AgentEvent, isEvent, noUsage, type Usage } from 'millrace';
import { type CallParts, createCallParts } from './call-parts.js';
import type { CallEnd, Part, CallRef } from './part.js';

/** Converts the events of a root call and its sub-agents to parts. */
export interface RunParts {
  hasEnded(): boolean;
  take(event: AgentEvent): readonly Part[];
  /** Ends the open sub-agent calls, then the root call with `end`. */
  end(end: CallEnd): readonly Part[];
}

interface OpenCall {
  readonly parts: CallParts;
  /** The call that it answers for: its parts are shown as parts of that call. */
  readonly shownAs: OpenCall | undefined;
  /** Whether it runs within an open step of that call, as one of its tools started it. */
  readonly isWithinStep: boolean;
  /** The usage of its own model answers, and of its ended sub-agents. */
  usage: Usage;
  childUsage: Usage;
}

/** Tracks one root call and its sub-agents, from the middle if `isJoined`. Keeps nothing of ended calls. */
export const createRunParts = (isJoined = false): RunParts => {
  const calls = new Map<string, OpenCall>();
  let hasBegun = false;

  const ended = (call: OpenCall, end: CallEnd): readonly Part[] => {
    const { parts, shownAs, usage, childUsage } = call;
    const { by } = parts;
    calls.delete(by.callId);
    const last = attribute(call, parts.close());
    const latest = parts.latest();
    if (latest !== undefined) shownAs?.parts.adopt(latest);
    // The usage of a reply includes the sub-agents.
    const total = end.status === 'replied' ? end.reply.usage : addUsage(usage, childUsage);
    const above = by.parentId === undefined ? undefined : calls.get(by.parentId);
    if (above !== undefined) above.childUsage = addUsage(above.childUsage, total);
    return [...last, { type: 'callEnd', by, end, usage: total }];
  };
  const endAll = (which: readonly OpenCall[], end: CallEnd): readonly Part[] =>
    which.toReversed().flatMap((call) => ended(call, end));

  return {
    hasEnded: () => hasBegun && calls.size === 0,
    end: (end) => {
      const open = [...calls.values()];
      const isRoot = ({ parts }: OpenCall): boolean => parts.by.parentId === undefined;
      return [
        ...endAll(
          open.filter((call) => !isRoot(call)),
          { status: 'aborted' },
        ),
        ...endAll(open.filter(isRoot), end),
      ];
    },
    take: (event) => {
      const known = calls.get(event.callId);
      if (known === undefined && !begins(event, calls, isJoined)) return [];
      hasBegun = true;
      const call = known ?? openCall(event, calls);
      calls.set(event.callId, call);
      const start: readonly Part[] =
        known === undefined ? [{ type: 'callStart', by: call.parts.by }] : [];
      if (isEvent(event, 'postReasoning', 'postSummary', 'postPlanning')) {
        call.usage = addUsage(call.usage, event.usage);
      }
      const parts = attribute(call, call.parts.take(event));
      const end = endOf(event, call.parts.pending);
      if (end === undefined) return [...start, ...parts];
      // Sub-agents end before their parent, even without events of their own.
      const orphans = [...calls.values()].filter((it) => isBelow(it, event.callId, calls));
      return [...start, ...endAll(orphans, { status: 'aborted' }), ...parts, ...ended(call, end)];
    },
  };
};

type OpenCalls = ReadonlyMap<string, OpenCall>;

const openCall = (event: AgentEvent, calls: OpenCalls): OpenCall => {
  const { parentId, speaks } = event;
  const above = parentId === undefined ? undefined : calls.get(parentId);
  const by = callRefOf(event, calls);
  return {
    parts: createCallParts(by),
    isWithinStep: by.toolCallId !== undefined || above?.isWithinStep === true,
    shownAs: speaks === true ? (above?.shownAs ?? above) : undefined,
    usage: noUsage,
    childUsage: noUsage,
  };
};

const isBelow = ({ parts: { by } }: OpenCall, callId: string, calls: OpenCalls): boolean => {
  if (by.parentId === undefined || by.parentId === callId) return by.parentId === callId;
  const above = calls.get(by.parentId);
  return above !== undefined && isBelow(above, callId, calls);
};

/** Attributes parts to the call that this one answers for, except for parts about this call itself. */
const attribute = (
  { shownAs, isWithinStep }: OpenCall,
  parts: readonly Part[],
): readonly Part[] => {
  if (shownAs === undefined) return parts;
  const isOwn = ({ type }: Part): boolean =>
    type === 'callStart' ||
    type === 'callEnd' ||
    type === 'notice' ||
    (isWithinStep && (type === 'stepStart' || type === 'stepEnd'));
  return parts.map((part) => (isOwn(part) ? part : { ...part, by: shownAs.parts.by }));
};

/** Whether the event starts a root call, or a sub-agent of an open call. */
const begins = (
  { iteration, parentId }: AgentEvent,
  calls: OpenCalls,
  isJoined: boolean,
): boolean =>
  (isJoined || iteration === 0) &&
  (parentId === undefined ? calls.size === 0 : calls.has(parentId));

const callRefOf = (
  { callId, parentId, sessionId, agent }: AgentEvent,
  calls: OpenCalls,
): CallRef => {
  const above = parentId === undefined ? undefined : calls.get(parentId);
  const toolCallId = above === undefined ? undefined : toolCallIdOf(callId, above.parts);
  return {
    callId,
    agent,
    ...(parentId === undefined ? {} : { parentId }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(toolCallId === undefined ? {} : { toolCallId }),
  };
};

/** The id of a sub-agent call consists of the parent's id, the tool call's id and, after the first call, a number. */
const toolCallIdOf = (callId: string, above: CallParts): string | undefined => {
  const before = `${above.by.callId}/`;
  if (!callId.startsWith(before)) return undefined;
  const position = callId.slice(before.length);
  return (
    above.toolCallId(position) ??
    above.toolCallId(position.replace(/(?:\+approval)?(?:\+\d+(?:\.\d+)?)*$/, ''))
  );
};

const endOf = (event: AgentEvent, pending: readonly string[]): CallEnd | undefined => {
  if (event.type === 'postCall') return { status: 'replied', reply: event.reply, pending };
  if (event.type !== 'error') return undefined;
  const { error } = event;
  return error.code === 'aborted' ? { status: 'aborted', error } : { status: 'failed', error };
};
