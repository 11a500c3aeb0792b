import type { Message, Reply } from 'millrace';
import { isRecord } from 'millrace/values';
import type { StoredRecord } from 'millrace/journal';
import type { Place } from '../places/place.js';
import type { UncertainMode } from '../script/script-agent.js';

/** What a process is to do: to lead some calls to their ends, from wherever they are. */
export interface Errand {
  /** Names the process. */
  readonly life: string;
  readonly place: Place;
  /** Where effects are counted. */
  readonly url: string;
  readonly calls: readonly ErrandCall[];
  /** None of the calls has begun before. */
  readonly isFirst: boolean;
}

/** One call of a script. */
export interface ErrandCall {
  readonly callId: string;
  readonly seed: number;
  /** It does nothing but wait for the server. Default: false. */
  readonly waits?: boolean;
  readonly mode: UncertainMode;
  /** Whether its session is kept by `keepSessions`; else its conversation is in a file of its own. Default: false. */
  readonly isKept?: boolean;
  /** Somebody interrupts it behind so many chunks of the model in one process, unless it has been. Default: nobody does. */
  readonly interruptAt?: number;
}

/** Where a process is, each time that something can go wrong there. */
export type Point =
  | 'ready'
  | 'claim'
  | 'write'
  | 'written'
  | 'chunk'
  | 'asked'
  | 'answered'
  | 'remember'
  | 'remembered'
  | 'replied';

/** What came of a call, and of those that have gone on with it, when all has ended. */
export interface Outcome {
  readonly callId: string;
  /** Of the call, and of each that has brought results to it. */
  readonly replies: readonly Reply[];
  readonly memory: readonly Message[];
  /** All that is written down, by the call. */
  readonly records: readonly (readonly StoredRecord[])[];
  /** Calls that are still open in the store. */
  readonly open: readonly string[];
}

/** A tool of which nobody knows how it ended, and what is done about it. */
export interface Uncertainty {
  readonly key: string;
  readonly item: string;
  readonly then: 'ask' | 'report' | 'rerun';
}

/** What a call does, and what has become of it. */
export type Deed = 'asks' | 'runs' | 'isInterrupted';

/** What a process tells. */
export type Said =
  | {
      /** A call asks its model, or runs a tool; or that it was interrupted is written down. */
      readonly type: 'deed';
      readonly callId: string;
      readonly deed: Deed;
    }
  | { readonly type: 'point'; readonly point: Point }
  | {
      /** A call goes on: what it does first that is new, and how long that took. */
      readonly type: 'resumed';
      readonly callId: string;
      readonly first: string;
      readonly ms: number;
    }
  | ({ readonly type: 'uncertain' } & Uncertainty)
  | { readonly type: 'ended'; readonly outcome: Outcome }
  | {
      readonly type: 'failed';
      readonly callId: string;
      /** Of a typed error. */
      readonly code?: string;
      readonly message: string;
    };

const types: readonly Said['type'][] = ['deed', 'point', 'resumed', 'uncertain', 'ended', 'failed'];

/** Tells whether a message is one of ours: nobody else can send one. */
export const isSaid = (value: unknown): value is Said =>
  isRecord(value) && types.some((type) => type === value['type']);

/** As `isSaid`, of what a process is to do. */
export const isErrand = (value: unknown): value is Errand =>
  isRecord(value) && Array.isArray(value['calls']);
