import { textEvent } from '../server/chat-events.js';
import { deltaAt } from '../server/long-text.js';
import { startAnswerServer } from '../server/start-answer-server.js';
import type { Section } from '../table.js';
import { measureSlow, type Slow, structure, takeInChild } from './measure-slow.js';
import { mostWaiting } from './most-waiting.js';
import type { WayName } from './ways.js';

/** The answer that is taken slowly. */
export interface SlowSectionOptions {
  readonly deltas: number;
  /** Bytes of each delta. */
  readonly bytes: number;
  /** Milliseconds that the consumer takes for an event. */
  readonly waitMs: number;
  /** Is told of each consumer that has all. */
  readonly onProgress?: (name: string) => void;
}

/** A consumer, and the buffers of the streams in its process. */
interface Case {
  readonly name: string;
  readonly way: WayName;
  readonly bufferBytes: number;
}

/** What a stream of Node 22 and later buffers, and what one of Node 20 does unless it is told otherwise. */
const [buffer, smallBuffer] = [65_536, 16_384];

const cases: readonly Case[] = [
  { name: 'for await', way: 'for await', bufferBytes: buffer },
  { name: 'ReadableStream', way: 'ReadableStream', bufferBytes: buffer },
  { name: 'coalesceMap', way: 'coalesceMap', bufferBytes: buffer },
  { name: 'plain concatMap', way: 'plain concatMap', bufferBytes: buffer },
  { name: 'for await, buffers of 16 KiB', way: 'for await', bufferBytes: smallBuffer },
];

const header = [
  'consumer',
  'deltas',
  'text',
  'events',
  'waiting',
  'read',
  'written',
  'pauses',
  'held MB',
  'RSS MB',
  's',
];

/** Measures all consumers at once: each has two processes of its own, and waits most of the time. */
export const slowSection = async (options: SlowSectionOptions): Promise<Section> => {
  const measured = await Promise.all(cases.map((one) => measureCase(one, options)));
  return {
    title: `Slow consumers of ${options.deltas} deltas of ${options.bytes} bytes, ${options.waitMs} ms for each event`,
    header,
    rows: measured.map(rowOf),
    wrongs: measured.flatMap((one) => wrongsOf(one, options)),
  };
};

type Measured = Case & { readonly slow: Slow };

const measureCase = async (one: Case, options: SlowSectionOptions): Promise<Measured> => {
  const server = await startAnswerServer();
  try {
    const take = takeInChild(one.bufferBytes);
    const slow = await measureSlow(server, { ...options, way: one.way }, take);
    options.onProgress?.(one.name);
    return { ...one, slow };
  } finally {
    await server.close();
  }
};

const rowOf = ({ name, slow }: Measured): readonly string[] => [
  name,
  ...[slow.taken.toFixed(), slow.isWhole ? 'whole' : 'LOST', slow.events.toFixed()],
  ...[slow.waiting, slow.read, slow.written, slow.pauses].map((count) => count.toFixed()),
  ...[slow.heldMb, slow.rssMb, slow.ms / 1_000].map((amount) => amount.toFixed(1)),
];

/** What a process may have read from the network ahead of a consumer that pulls, in bytes, however long the answer is. */
const mostRead = 1_000_000;

const wrongsOf = (
  { name, way, bufferBytes, slow }: Measured,
  { deltas, bytes }: SlowSectionOptions,
): readonly string[] => {
  const wrongs = [...slow.wrongs];
  const must = (isRight: boolean, what: string): void => {
    if (!isRight) wrongs.push(what);
  };
  const wireBytes = textEvent(deltaAt(0, bytes)).length;
  if (way === 'coalesceMap') must(slow.events < deltas, 'no deltas were merged');
  else must(slow.events === deltas + structure.length, 'not every delta was an event');
  if (isPulled(way)) {
    must(slow.waiting <= mostWaiting(wireBytes), 'too many deltas waited');
    must(bufferBytes < buffer || slow.read * wireBytes <= mostRead, 'too much was read ahead');
  }
  return wrongs.map((wrong) => `${name}: ${wrong}`);
};

const isPulled = (way: WayName): boolean => way === 'for await' || way === 'ReadableStream';
