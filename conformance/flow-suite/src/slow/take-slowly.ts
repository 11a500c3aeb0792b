import { createAgent, type Model } from 'millrace';
import { openai } from '@millrace/openai';
import { setTimeout as sleep } from 'node:timers/promises';
import { textEvent } from '../server/chat-events.js';
import { deltaAt } from '../server/long-text.js';
import { type Counted, countTaken } from './count-taken.js';
import { type Memory, type MemoryWatch, watchMemory } from './watch-memory.js';
import { watchNetwork } from './watch-network.js';
import { type WayName, ways } from './ways.js';

/** What is taken, and how slowly. */
export interface TakeOptions {
  /** Where a long answer is. */
  readonly url: string;
  /** Where a short answer is, to warm up with. */
  readonly shortUrl: string;
  readonly way: WayName;
  /** Bytes of each delta. */
  readonly bytes: number;
  /** Milliseconds that the consumer takes for an event. */
  readonly waitMs: number;
}

/** What a slow consumer has got, and what it took to get there. */
export interface Taken extends Counted, Memory {
  /** From the call to its end, in milliseconds. */
  readonly ms: number;
}

/** By what it is taken and watched, where that is not what the options say. */
export interface TakeMeans {
  readonly watch?: () => MemoryWatch;
  /** What the consumer does with each event. */
  readonly wait?: () => Promise<void>;
}

/** Takes the events of a call in one way, slowly, and tells what had to wait meanwhile. */
export const takeSlowly = async (
  { url, shortUrl, way, bytes, waitMs }: TakeOptions,
  { watch = watchMemory, wait = () => sleep(waitMs) }: TakeMeans = {},
): Promise<Taken> => {
  // The vendor's SDK is loaded with the first request.
  await createAgent({ model: modelAt(shortUrl) }).call('Hello.');
  const agent = createAgent({ model: modelAt(url) });
  const wireBytes = textEvent(deltaAt(0, bytes)).length;
  const counter = countTaken(bytes);
  const memory = watch();
  const network = watchNetwork();
  // eslint-disable-next-line rxjs-x/no-ignored-error -- it never errors
  const told = agent.events$.subscribe(counter.tell);
  const startedAt = performance.now();
  try {
    await ways[way](agent, (event) => {
      counter.take(event, network.bytesRead() / wireBytes);
      return wait();
    });
  } finally {
    told.unsubscribe();
    network.stop();
  }
  const ms = performance.now() - startedAt;
  return { ...counter.end(), ...memory.stop(), ms };
};

const modelAt = (baseURL: string): Model =>
  openai('loopback', { apiKey: 'test', baseURL, caps: { textLength: 1e9 } });
