import { map, type Observable, reduce } from 'rxjs';
import type { AgentEvent, EventType } from '../events.js';
import { callStep, type CallRecord, isCallRecord, unreadableCall } from './call-record.js';
import { records$ } from './call-store.js';
import type { CallStoreDriver, StoredRecord } from './call-store-driver.js';
import { parsedText } from './record-json.js';
import { isSeatRecord, seatStep } from './seat-step.js';
import { sessionChanges } from './session-changes.js';
import { notStored } from './stored-call.js';
import { isEnd, storedEvent } from './stored-event.js';

/** A call as far as its session needs to know it. */
export interface WrittenCall {
  readonly begun: CallRecord;
  /** The events by which its session has changed, and the last ones. */
  readonly changes: readonly AgentEvent[];
  /** It has replied, and told so: nothing is left to be done. */
  readonly hasEnded: boolean;
  /** One that was interrupted while it waited has not been a part of its session. */
  readonly wasSeated: boolean;
}

/** Reads a call once, and emits what its session needs to know of it. Errors with `invalidResume` where there is none, with `invalidState` where it cannot be read. */
export const writtenCall$ = (driver: CallStoreDriver, callId: string): Observable<WrittenCall> =>
  records$(driver, callId).pipe(
    reduce<StoredRecord, Found>(
      (found, record) => {
        if (record.kind === 'event') {
          if (matters(record.name)) found.events.push(record);
          return found;
        }
        found.hasSteps = true;
        // One that was gone on with has not ended where it seemed to.
        found.behind = found.events.length;
        if (record.name === `${callId}/${callStep}`) found.first ??= record;
        if (record.name === `${callId}/${seatStep}`) found.wasSeated = !wasInterrupted(record);
        return found;
      },
      { first: undefined, events: [], behind: 0, hasSteps: false, wasSeated: true },
    ),
    map(({ first, events, behind, hasSteps, wasSeated }) => {
      if (first === undefined) throw hasSteps ? unreadableCall(callId) : notStored(callId);
      const begun = parsedText(`The beginning of the call '${callId}'`, first.text);
      if (!isCallRecord(begun)) throw unreadableCall(callId);
      const changes = events.map((record) => storedEvent(callId, record));
      const isReplied = (event: AgentEvent): boolean =>
        event.type === 'postCall' && isEnd(event, callId);
      return { begun, changes, hasEnded: changes.slice(behind).some(isReplied), wasSeated };
    }),
  );

interface Found {
  first: StoredRecord | undefined;
  readonly events: StoredRecord[];
  /** How many of the events stand before the last step. */
  behind: number;
  hasSteps: boolean;
  wasSeated: boolean;
}

const wasInterrupted = ({ name, text }: StoredRecord): boolean => {
  const seat = parsedText(`The record of the step '${name}'`, text);
  return isSeatRecord(seat) && seat.as === 'interrupted';
};

const ends: readonly EventType[] = ['postCall', 'error'];
const names: ReadonlySet<string> = new Set([...sessionChanges, ...ends]);

const matters = (name: string): boolean => names.has(name);
