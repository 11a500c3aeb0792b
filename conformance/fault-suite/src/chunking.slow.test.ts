import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type AgentEvent, createAgent, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { record } from 'millrace/testing';
import {
  type Answer,
  type FaultServer,
  type Pieces,
  startFaultServer,
  streamed,
  streamOf,
  wires,
} from '@millrace/fault-server';
import fc from 'fast-check';
import { subjects } from './subjects.js';

let server: FaultServer;

beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());

const weather = tool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  input: jsonSchema({ type: 'object', properties: { city: { type: 'string' } } }),
  run: () => 'Klarvær 🌤',
});

const answers: readonly Answer[] = [
  {
    thinking: 'Hm — 天気?',
    text: ['Jeg ', 'ser etter 😀', '.'],
    toolCalls: [{ arguments: ['{"city":"Tøns', 'berg"}'] }, { arguments: '{"city":"東京"}' }],
  },
  { text: ['Klart ', 'i begge 🌤.'], usage: { input: 9, cached: 4, output: 3 } },
];

/** What a call tells, but for when it was. */
const toldOf = (events: readonly AgentEvent[]): unknown =>
  events.map((event) =>
    event.type === 'postCall'
      ? { ...event, at: 0, reply: { ...event.reply, createdAt: 0, elapsedMs: 0, toolCalls: [] } }
      : { ...event, at: 0, ms: 0 },
  );

describe.each(wires)('the stream of %s', (wire) => {
  const told = async (pieces: Pieces): Promise<unknown> => {
    const { url } = await server.play({
      responses: answers.map((answer) => streamed(streamOf(wire, answer), pieces)),
    });
    const agent = createAgent({ model: subjects[wire](url), tools: [weather] });
    return toldOf(await record(agent.stream$('Hvordan er været?', { callId: 'c' })));
  };

  it('X5: makes the same events whole, byte by byte, and in any pieces', async () => {
    const whole = await told('whole');
    expect(JSON.stringify(whole)).toContain('Klart i begge 🌤.');
    expect(await told(1)).toEqual(whole);
    const sizes = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(sizes, async (pieces) => {
        expect(await told(pieces)).toEqual(whole);
      }),
      { numRuns: 12 },
    );
  }, 180_000);
});
