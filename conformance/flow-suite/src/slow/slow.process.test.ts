import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AnswerServer, startAnswerServer } from '../server/start-answer-server.js';
import { measureSlow, type Slow, structure, type Take, takeInChild } from './measure-slow.js';
import { mostWaiting } from './most-waiting.js';
import { takeSlowly } from './take-slowly.js';
import { type WayName, wayNames } from './ways.js';

/** Big deltas: some hundred of them are more than any buffer of the process holds. */
const bytes = 8_000;
const deltas = 300;

/** Takes so long for the first event that all which does not wait has come. */
const takeHere: Take = (options) => {
  const pauses = [500];
  return takeSlowly(options, {
    wait: () => sleep(pauses.pop() ?? options.waitMs),
    // The memory of this process is that of the tests.
    watch: () => ({ stop: () => ({ heldMb: 0, rssMb: 0 }) }),
  });
};

describe('slow consumers over HTTP', () => {
  let server: AnswerServer;
  const measured = new Map<WayName, Slow>();

  const measure = (way: WayName, take = takeHere): Promise<Slow> =>
    measureSlow(server, { way, deltas, bytes, waitMs: 1 }, take);

  beforeAll(async () => {
    server = await startAnswerServer();
    // One after the other: each watches the network of this process.
    for (const way of wayNames) measured.set(way, await measure(way));
  }, 180_000);
  afterAll(() => server.close());

  it.each(wayNames)('I16: %s loses and repeats nothing', (way) => {
    expect(measured.get(way)).toMatchObject({ wrongs: [], isWhole: true, taken: deltas });
  });

  it.each<WayName>(['for await', 'ReadableStream'])(
    'I16: however long the answer is, little of it waits for a %s',
    (way) => {
      expect(measured.get(way)?.events).toBe(deltas + structure.length);
      expect(measured.get(way)?.waiting).toBeLessThanOrEqual(mostWaiting(bytes));
    },
  );

  it('I16: most of the answer waits for a plain concatMap', () => {
    expect(measured.get('plain concatMap')?.waiting).toBeGreaterThan(deltas / 2);
  });

  it('I16: coalesceMap makes fewer events of the deltas that wait', () => {
    expect(measured.get('coalesceMap')?.events).toBeLessThan(deltas / 2);
  });

  it.each<WayName>(['for await', 'ReadableStream'])(
    'I16: a %s pauses the source down to the socket',
    async (way) => {
      const { read } = await measure(way, takeInChild(65_536));
      expect(read).toBeLessThan(deltas / 2);
    },
    60_000,
  );
});
