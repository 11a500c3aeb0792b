import { inChild } from '../in-child.js';
import { digestOf } from '../server/long-text.js';
import type { AnswerServer } from '../server/start-answer-server.js';
import { mostAhead } from './most-ahead.js';
import { readTaken } from './read-taken.js';
import type { Taken, TakeOptions } from './take-slowly.js';
import type { WayName } from './ways.js';

/** An answer, and how it is taken. */
export interface SlowOptions extends Pick<TakeOptions, 'way' | 'bytes' | 'waitMs'> {
  readonly deltas: number;
}

/** What came of a slow consumer. */
export interface Slow extends Omit<Taken, 'marks' | 'digest' | 'others'> {
  readonly way: WayName;
  /** Deltas that the server had written and the consumer had not begun to take, at most: those in the system's buffers, too. */
  readonly written: number;
  /** How often the server had to wait. */
  readonly pauses: number;
  /** Whether all text has come that was sent. */
  readonly isWhole: boolean;
  /** What is not as it must be. */
  readonly wrongs: readonly string[];
}

/** Does the taking. */
export type Take = (options: TakeOptions) => Promise<Taken>;

/**
 * Takes slowly in a process of its own, so that its memory is that of the consumer alone. Its streams have buffers of so
 * many bytes. The package must be built.
 */
export const takeInChild =
  (bufferBytes: number): Take =>
  ({ url, shortUrl, way, bytes, waitMs }) =>
    inChild({
      module: new URL('../../dist/slow/process.js', import.meta.url),
      args: [url, shortUrl, way, String(bytes), String(waitMs), String(bufferBytes)],
      read: readTaken,
    });

/** Has a slow consumer take a long answer, and lays what it got beside what the server saw. */
export const measureSlow = async (
  server: AnswerServer,
  { way, deltas, bytes, waitMs }: SlowOptions,
  take: Take,
): Promise<Slow> => {
  const vendor = server.play({ type: 'long', deltas, bytes });
  const shortUrl = server.play({ type: 'short' }).url;
  const { marks, digest, others, ...taken } = await take({
    url: vendor.url,
    shortUrl,
    way,
    bytes,
    waitMs,
  });
  const written = (await vendor.seen()).flatMap((request) => request.marks);
  const isWhole = digest === digestOf(deltas, bytes);
  const wrongs = [
    ...(isWhole ? [] : ['the text is not what was sent']),
    ...(others.join() === structure.join() ? [] : [`beside the text came ${others.join(', ')}`]),
  ];
  return {
    ...taken,
    way,
    written: mostAhead(written, marks),
    pauses: written.length - 1,
    isWhole,
    wrongs,
  };
};

/** The events of a call beside its text: none of them may be lost or repeated. */
export const structure = ['preCall', 'preReasoning', 'postReasoning', 'postCall'];
