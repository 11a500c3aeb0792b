import type { Observable } from 'rxjs';
import type { Demand } from '../demand.js';
import type { EventType, Listener } from '../events.js';

/** Where a journal records calls: a store of calls, or an engine. */
export interface JournalStore {
  /**
   * Opens the journal of a root call as its only writer, emits what `run` emits, and closes it at the end or on unsubscribe. Errors with
   * `conflict` if another writer has it, and with `store`. Cold.
   */
  open$<T>(callId: string, run: (journal: OpenJournal) => Observable<T>): Observable<T>;
}

/** The journal of one outermost call, and of the calls below it. */
export interface OpenJournal {
  /**
   * Runs a step once: emits what `work` emits once that is recorded, and from then on, in any process, what was recorded. `id` is a position
   * (`callId/iteration`, `callId/iteration/index`), the same on a resumed run. A step emits one value of plain JSON, or none; that, or an error, is not recorded.
   */
  step$(id: string, work: () => Observable<unknown>): Observable<unknown>;
  /** Tells whether a step is written down. Without it, every step may be. */
  readonly isWritten?: (id: string) => boolean;
  /** The ids of the recorded steps. Without it, an optional step that was not recorded is performed wherever it stands. */
  readonly stepIds?: () => Iterable<string>;
  /** Hears every event of the call, and of the calls below it. */
  readonly listener?: Listener;
  /** The number of the last event that is written down: those of a resumed call go on behind it. Default: 0. */
  readonly lastSeq?: number;
  /** Messages that were begun, and shown, by steps that are not written down. A resumed call begins them again, and takes back what was shown of them. Default: none. */
  readonly cutShort?: ReadonlySet<string>;
  /** Tells, once for each, whether an event was told behind the last step that is written down: a resumed call does not tell it again. Default: nothing was. */
  readonly wasTold?: (callId: string, type: EventType) => boolean;
  /** The call has ended, and told so: nothing is left to be done. Default: false. */
  readonly hasEnded?: boolean;
  /** Closed while events wait to be written down: it pauses the call's sources. Default: always open. */
  readonly demand?: Demand;
}
