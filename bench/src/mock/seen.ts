import { isRecord } from '../is-record.js';

/** What the server has seen of its clients. */
export interface Seen {
  /** Why requests were refused, oldest first. */
  readonly refused: readonly string[];
  /** When the sockets of streams closed that had not ended, by the clock of the machine, oldest first. */
  readonly cutAt: readonly number[];
  /** How far streams had come that were watched, oldest first. */
  readonly watched: readonly (readonly StreamMark[])[];
}

/** How far a stream had come, in bytes on the connection. */
export interface StreamMark {
  readonly at: number;
  /** What the server had given to the system. */
  readonly written: number;
  /** What of that the system had not brought to the client's end. */
  readonly sendQueue: number;
  /** What lay at the client's end, and its process had not read. */
  readonly receiveQueue: number;
}

/** Reads what a server says that it has seen, or throws. */
export const readSeen = (said: unknown): Seen => {
  if (isSeen(said)) return said;
  throw new Error('The mock says something else than what it has seen.');
};

const isSeen = (value: unknown): value is Seen =>
  isRecord(value) && ['refused', 'cutAt', 'watched'].every((key) => Array.isArray(value[key]));
