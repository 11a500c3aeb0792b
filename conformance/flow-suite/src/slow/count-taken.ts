import { type AgentEvent, isEvent } from 'millrace';
import { createHash } from 'node:crypto';
import { now } from '../one-clock.js';
import type { Mark } from '../server/seen-request.js';

/** What a consumer has got of a long answer. */
export interface Counted {
  /** Events that it has taken, whatever they are. */
  readonly events: number;
  /** Deltas of the server that are in them. */
  readonly taken: number;
  /** The digest of all the text. */
  readonly digest: string;
  /** The types of all events that are no deltas, in order. */
  readonly others: readonly string[];
  /** Deltas that the agent had told of and the consumer had not begun to take, at most. */
  readonly waiting: number;
  /** The same of those that the process had read from the network. */
  readonly read: number;
  /** How far the consumer was, from time to time. */
  readonly marks: readonly Mark[];
}

/** Counts what is told, and what of that has been taken. */
export interface TakenCounter {
  /** Counts an event that the agent tells of, whether or not the consumer is ready. */
  readonly tell: (event: AgentEvent) => void;
  /** Counts an event that the consumer begins to take. So many deltas have been read from the network. */
  readonly take: (event: AgentEvent, read: number) => void;
  /** Counts no more, and tells what it has counted. */
  readonly end: () => Counted;
}

/** Milliseconds between two marks. */
const markEvery = 20;

/** Makes a counter for an answer with deltas of so many bytes. */
export const countTaken = (bytes: number): TakenCounter => {
  const hash = createHash('sha256');
  const others: string[] = [];
  const marks: Mark[] = [];
  let [events, told, taken, waiting, ahead] = [0, 0, 0, 0, 0];
  const mark = (): void => {
    if (now() - (marks.at(-1)?.at ?? 0) >= markEvery) marks.push({ at: now(), deltas: taken });
  };
  return {
    tell: (event) => {
      if (isEvent(event, 'reasoningChunk')) told += 1;
      waiting = Math.max(waiting, told - taken);
    },
    take: (event, read) => {
      events += 1;
      if (isEvent(event, 'reasoningChunk')) {
        hash.update(event.delta);
        taken += event.delta.length / bytes;
      } else {
        others.push(event.type);
      }
      ahead = Math.max(ahead, read - taken);
      mark();
    },
    end: () => ({ events, taken, digest: hash.digest('hex'), others, waiting, read: ahead, marks }),
  };
};
