import type { AgentEvent, EventOf } from '../events.js';

/** A piece of a message that grows. Every other event is structural: it is never merged. */
export type DeltaEvent = EventOf<'reasoningChunk' | 'summaryChunk' | 'planningChunk'>;

export const isDelta = <Event extends AgentEvent>(event: Event): event is Event & DeltaEvent =>
  event.type === 'reasoningChunk' ||
  event.type === 'summaryChunk' ||
  event.type === 'planningChunk';

export const isAnswerDelta = <Event extends AgentEvent>(
  event: Event,
): event is Event & EventOf<'reasoningChunk' | 'summaryChunk'> =>
  event.type === 'reasoningChunk' || event.type === 'summaryChunk';

/** Tells whether an event adds to the very text that another one of its call, before it, added to. */
export const continues = (earlier: AgentEvent, later: AgentEvent): boolean =>
  isDelta(earlier) &&
  isDelta(later) &&
  earlier.messageId === later.messageId &&
  earlier.type === later.type &&
  earlier.kind === later.kind &&
  earlier.toolUse?.id === later.toolUse?.id;

/** Makes one event of several that continue one another: the last one, with all their deltas. */
export const mergeDeltas = <Event extends AgentEvent>(
  last: Event,
  deltas: readonly string[],
): Event => {
  if (deltas.length < 2) return last;
  const merged = { ...last, delta: deltas.join('') };
  Object.freeze(merged);
  return merged;
};
