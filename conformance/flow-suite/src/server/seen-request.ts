import { isRecord } from 'millrace/values';

/** One request, as the server has seen it. Times are those of the one clock. */
export interface SeenRequest {
  /** When the response was over, or its client had left. */
  readonly closedAt: number;
  /** Whether all of the response has been sent. */
  readonly isWhole: boolean;
  /** Bytes of the response that have been written. */
  readonly bytes: number;
  /** What had been written each time that the socket would take no more, and in the end. */
  readonly marks: readonly Mark[];
}

/** How many deltas of a long answer one side was done with at a time. */
export interface Mark {
  readonly at: number;
  readonly deltas: number;
}

const isMark = (value: unknown): value is Mark =>
  isRecord(value) && typeof value['at'] === 'number' && typeof value['deltas'] === 'number';

/** Reads what the server says of its requests. */
export const readSeen = (said: unknown): readonly SeenRequest[] => {
  if (Array.isArray(said) && said.every(isSeen)) return said;
  throw new Error('The server says something else than what it has seen.');
};

const isSeen = (value: unknown): value is SeenRequest =>
  isRecord(value) &&
  typeof value['closedAt'] === 'number' &&
  typeof value['isWhole'] === 'boolean' &&
  typeof value['bytes'] === 'number' &&
  Array.isArray(value['marks']) &&
  value['marks'].every(isMark);
