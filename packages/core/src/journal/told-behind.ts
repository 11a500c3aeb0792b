import { isRecord, parsedJson } from '../json.js';
import type { EventType } from '../events.js';
import { interruptStep } from './interrupt-step.js';
import { callBegunBy, callOfStep } from './call-of-step.js';
import type { StoredRecord } from './call-store-driver.js';

/** What each call of a log has told behind the last of its own steps. */
export interface ToldBehind {
  /** Takes the next record of the log. */
  readonly add: (record: StoredRecord) => void;
  /** Whether a call has told an event of a type. */
  readonly has: (callId: string, type: EventType) => boolean;
  /** As `has`, but each one that was told counts once. */
  readonly take: (callId: string, type: EventType) => boolean;
}

/** Reads what the calls of a log have told. Those that run side by side have steps of their own: one of another forgets nothing. */
export const createToldBehind = (): ToldBehind => {
  const calls = new Map<string, Map<string, number>>();
  const of = (callId: string): Map<string, number> => {
    const told = calls.get(callId) ?? new Map<string, number>();
    calls.set(callId, told);
    return told;
  };
  const has: ToldBehind['has'] = (callId, type) => (calls.get(callId)?.get(type) ?? 0) > 0;
  return {
    add: ({ kind, name, text }) => {
      if (kind === 'step') {
        // It has no position: what was told before it stands behind the step before.
        if (name.endsWith(`/${interruptStep}`)) return;
        const begun = callBegunBy(name);
        if (begun !== undefined) of(begun);
        calls.get(callOfStep(name, calls))?.clear();
        return;
      }
      const event = parsedJson(text);
      const callId = isRecord(event) ? event['callId'] : undefined;
      if (typeof callId !== 'string') return;
      const told = of(callId);
      told.set(name, (told.get(name) ?? 0) + 1);
    },
    has,
    take: (callId, type) => {
      const isThere = has(callId, type);
      const told = calls.get(callId);
      if (isThere) told?.set(type, (told.get(type) ?? 0) - 1);
      return isThere;
    },
  };
};
