import { type AgentEvent, isEvent, type Usage } from '@millrace/core';
import { addUsage, noUsage } from '@millrace/core/adapter';
import { type CallParts, createCallParts } from './call-parts.js';
import type { CallEnd, Part, Speaker } from './part.js';

/** What a root call and the calls below it show. */
export interface RunParts {
  readonly hasEnded: boolean;
  take(event: AgentEvent): readonly Part[];
  /** Ends the root call so, after the calls below it that are still open. */
  end(end: CallEnd): readonly Part[];
}

interface OpenCall {
  readonly parts: CallParts;
  /** The call that it speaks for: what it shows is shown as that one's. */
  readonly voice: OpenCall | undefined;
  /** A step of the call that it speaks for is open, as a tool of that one has made the call. */
  readonly isWithinStep: boolean;
  /** Of the requests that have been answered, and of the calls below that have ended. */
  usage: Usage;
  below: Usage;
}

/** Follows one root call and the calls below it, from their begin, or where it is joined from its middle. Of a call it keeps nothing once it has ended. */
export const createRunParts = (isJoined = false): RunParts => {
  const calls = new Map<string, OpenCall>();
  let hasBegun = false;

  const begin = (event: AgentEvent): OpenCall => {
    hasBegun = true;
    const { parentId, speaks } = event;
    const above = parentId === undefined ? undefined : calls.get(parentId);
    const by = speakerOf(event, calls);
    const call = {
      parts: createCallParts(by),
      isWithinStep: by.toolCallId !== undefined || above?.isWithinStep === true,
      voice: speaks === true ? (above?.voice ?? above) : undefined,
      usage: noUsage,
      below: noUsage,
    };
    calls.set(event.callId, call);
    return call;
  };
  const ended = (call: OpenCall, end: CallEnd): readonly Part[] => {
    const { parts, voice, usage, below } = call;
    const { by } = parts;
    calls.delete(by.callId);
    const last = spoken(call, parts.close());
    if (parts.latest !== undefined) voice?.parts.adopt(parts.latest);
    // A reply tells of the calls below, too.
    const total = end.status === 'replied' ? end.reply.usage : addUsage(usage, below);
    const above = by.parentId === undefined ? undefined : calls.get(by.parentId);
    if (above !== undefined) above.below = addUsage(above.below, total);
    return [...last, { type: 'callEnd', by, end, usage: total }];
  };
  const isBelow = ({ parts: { by } }: OpenCall, callId: string): boolean => {
    if (by.parentId === undefined || by.parentId === callId) return by.parentId === callId;
    const above = calls.get(by.parentId);
    return above !== undefined && isBelow(above, callId);
  };
  const endAll = (which: readonly OpenCall[], end: CallEnd): readonly Part[] =>
    which.toReversed().flatMap((call) => ended(call, end));

  return {
    get hasEnded() {
      return hasBegun && calls.size === 0;
    },
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
      const call = known ?? begin(event);
      const start: readonly Part[] =
        known === undefined ? [{ type: 'callStart', by: call.parts.by }] : [];
      if (isEvent(event, 'postReasoning', 'postSummary', 'postPlanning')) {
        call.usage = addUsage(call.usage, event.usage);
      }
      const parts = spoken(call, call.parts.take(event));
      const end = endOf(event);
      if (end === undefined) return [...start, ...parts];
      // Calls below end before the one above, also where nobody has said so.
      const orphans = [...calls.values()].filter((it) => isBelow(it, event.callId));
      return [...start, ...endAll(orphans, { status: 'aborted' }), ...parts, ...ended(call, end)];
    },
  };
};

/** What a call shows for another one, but for what is said of the call itself. */
const spoken = ({ voice, isWithinStep }: OpenCall, parts: readonly Part[]): readonly Part[] => {
  if (voice === undefined) return parts;
  const isOwn = ({ type }: Part): boolean =>
    type === 'callStart' ||
    type === 'callEnd' ||
    type === 'notice' ||
    (isWithinStep && (type === 'stepStart' || type === 'stepEnd'));
  return parts.map((part) => (isOwn(part) ? part : { ...part, by: voice.parts.by }));
};

/** The first event of a call, or of one below a call that is shown. */
const begins = (
  { iteration, parentId }: AgentEvent,
  calls: ReadonlyMap<string, OpenCall>,
  isJoined: boolean,
): boolean =>
  (isJoined || iteration === 0) &&
  (parentId === undefined ? calls.size === 0 : calls.has(parentId));

const speakerOf = (
  { callId, parentId, sessionId, agent }: AgentEvent,
  calls: ReadonlyMap<string, OpenCall>,
): Speaker => {
  const above = parentId === undefined ? undefined : calls.get(parentId);
  const toolCallId = above === undefined ? undefined : toolCallOf(callId, above.parts);
  return {
    callId,
    agent,
    ...(parentId === undefined ? {} : { parentId }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(toolCallId === undefined ? {} : { toolCallId }),
  };
};

/** The id of a call below is its position: that of the call above, of the use of the tool, and a number behind the first. */
const toolCallOf = (callId: string, above: CallParts): string | undefined => {
  const before = `${above.by.callId}/`;
  if (!callId.startsWith(before)) return undefined;
  const position = callId.slice(before.length);
  return (
    above.toolCallId(position) ??
    above.toolCallId(position.replace(/(?:\+approval)?(?:\+\d+(?:\.\d+)?)*$/, ''))
  );
};

const endOf = (event: AgentEvent): CallEnd | undefined => {
  if (event.type === 'postCall') return { status: 'replied', reply: event.reply };
  if (event.type !== 'error') return undefined;
  const { error } = event;
  return error.code === 'aborted' ? { status: 'aborted', error } : { status: 'failed', error };
};
