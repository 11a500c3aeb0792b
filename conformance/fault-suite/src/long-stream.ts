import { createAgent, textOf } from 'millrace';
import {
  bytes,
  type FaultServer,
  type Scenario,
  streamHeaders,
  streamOf,
  type Wire,
} from '@millrace/fault-server';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { subjects } from './subjects.js';

const word = 'stream ';

/** Deltas that leave the server together. */
const perWrite = 50;

/** An answer of so many deltas. */
export const longStream = (wire: Wire, deltas: number): Scenario => {
  const events = streamOf(wire, { text: [word] });
  const at = events.findIndex((event) => event.includes(`"${word}"`));
  const delta = events[at] ?? '';
  const times = Math.ceil(deltas / perWrite);
  const before = events.slice(0, at).join('');
  // The end repeats the whole text, and it decides.
  const whole = JSON.stringify(word.repeat(times * perWrite));
  const after = events
    .slice(at + 1)
    .join('')
    .replaceAll(JSON.stringify(word), whole);
  return {
    responses: [
      [streamHeaders, bytes(before), bytes(delta.repeat(perWrite), { times }), bytes(after)],
    ],
  };
};

/** What a long answer took. */
export interface Measured {
  readonly ms: number;
  /** Memory that is held behind the call beyond what was before it, in megabytes. */
  readonly grownMb: number;
}

/** Takes an answer of so many deltas, and measures it. */
export const measureStream = async (
  server: FaultServer,
  wire: Wire,
  deltas: number,
): Promise<Measured> => {
  const { url } = await server.play(longStream(wire, deltas));
  const agent = createAgent({
    model: subjects[wire](url, { caps: {}, timeouts: { firstChunkMs: 60_000 } }),
  });
  const before = heapMb();
  const startedAt = performance.now();
  const reply = await agent.call('Go on.');
  const ms = performance.now() - startedAt;
  const grownMb = heapMb() - before;
  const { length } = textOf(reply);
  if (length !== deltas * word.length) throw new Error(`The answer has ${length} characters.`);
  return { ms, grownMb };
};

setFlagsFromString('--expose_gc');

const heapMb = (): number => {
  runInNewContext('gc()');
  return process.memoryUsage().heapUsed / 1_000_000;
};
