import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { type AgentEvent, createAgent, type Model, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { cassette, marbles, record, verifyEvents } from 'millrace/testing';
import {
  bytes,
  type FaultServer,
  hangUp,
  json,
  type Played,
  startFaultServer,
  streamed,
  streamHeaders,
  streamOf,
  vendorError,
} from '@millrace/fault-server';
import { openai } from '@millrace/openai';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Real sockets and processes may have to wait for a busy machine.
jest.setTimeout(180_000);

/** Recorded by this test where it is missing: delete it, or set MILLRACE_CASSETTES=record. */
const fixture = new URL('../cassettes/errand.json', import.meta.url);
const apiKey = ['sk', 'test', '0123456789abcdef'].join('-');

let server: FaultServer;
const folder = mkdtempSync(join(tmpdir(), 'cassette-'));
beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

/** Too many requests, a stream that is cut, a tool call, an answer. */
const playFaults = (retryAfterMs: number): Promise<Played> => {
  const error = vendorError('chat', 429, { message: `Slow down, ${apiKey}.` });
  const begun = streamOf('chat', { text: 'Let me see. Which city was it?' }).slice(0, 4);
  const toolCalls = [{ name: 'weather', arguments: '{"city":"Oslo"}' }];
  return server.play({
    responses: [
      json(429, error, { 'retry-after-ms': String(retryAfterMs) }),
      [streamHeaders, bytes(begun.join('')), hangUp],
      streamed(streamOf('chat', { text: 'Let me look.', toolCalls })),
      streamed(streamOf('chat', { text: 'It snows in Oslo.' })),
    ],
  });
};

const modelAt = (baseURL: string): Model =>
  openai.chat('gpt-5-mini', { apiKey, baseURL, retry: { minMs: 20, retryPartial: true } });

/** It would fail if it was asked. */
const offline = modelAt('http://127.0.0.1:9/nobody');

const weather = tool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
  }),
  run: ({ city }) => `Snow in ${city}.`,
});

const agentOf = (model: Model) => createAgent({ name: 'helper', model, tools: [weather] });

const run = (model: Model): Promise<readonly AgentEvent[]> =>
  record(agentOf(model).stream$('How is the weather in Oslo?').pipe(verifyEvents()));

/** The port is another one in each recording. */
const options = { redact: /127\.0\.0\.1:\d+/ };

/** Events without ids, times and what is redacted. */
const comparable = (events: readonly AgentEvent[]): unknown => {
  const id = events[0]?.callId ?? '';
  const written = JSON.stringify(events, (key, value: unknown) => {
    if (['at', 'ms', 'elapsedMs', 'createdAt', 'waitMs', 'retryAfterMs'].includes(key)) return 0;
    return value instanceof Error ? { ...value, message: value.message } : value;
  });
  return JSON.parse(written.replaceAll(id, 'id').replace(/127\.0\.0\.1:\d+/g, '[redacted]'));
};

const typesOf = (events: readonly AgentEvent[]): readonly string[] =>
  events.map(({ type }) => type).filter((type) => type !== 'reasoningChunk');

const expected = [
  ...['preCall', 'preReasoning', 'modelRetry', 'modelRetry', 'messageDiscarded', 'postReasoning'],
  ...['preActing', 'postActing', 'preReasoning', 'postReasoning', 'postCall'],
];

it('a call through faults of a provider replays with the same events and the same reply', async () => {
  const file = join(folder, 'errand.json');
  const played = await playFaults(30);
  const model = cassette(file, modelAt(played.url), { ...options, mode: 'record' });
  const live = await run(model);
  model.verify();
  expect(await played.settled()).toHaveLength(4);
  expect(typesOf(live)).toEqual(expected);
  expect(live.at(-1)).toMatchObject({ reply: { text: 'It snows in Oslo.' } });

  const replay = cassette(file, offline, { ...options, mode: 'replay' });
  const replayed = await run(replay);
  replay.verify();
  expect(comparable(replayed)).toEqual(comparable(live));
  expect(readFileSync(file, 'utf8')).not.toMatch(/sk-test|127\.0\.0\.1/);
});

it('a committed cassette replays in no time, and in virtual time with the delays of its recording', async () => {
  const played = await playFaults(40_000);
  const model = cassette(fixture, modelAt(played.url), options);
  const replayed = await run(model);
  model.verify();
  expect(typesOf(replayed)).toEqual(expected);
  expect(replayed.at(-1)).toMatchObject({
    reply: { text: 'It snows in Oslo.', iterations: 2, toolCalls: [{ output: 'Snow in Oslo.' }] },
  });

  const { recordings } = JSON.parse(readFileSync(fixture, 'utf8'));
  const total = recordings.reduce((sum: number, { end: [ms] }: { end: [number] }) => sum + ms, 0);
  expect(total).toBeGreaterThan(40_000);
  marbles(({ scheduler, flush }) => {
    const timed = cassette(fixture, offline, { ...options, speed: 1 });
    const events: AgentEvent[] = [];
    agentOf(timed)
      .stream$('How is the weather in Oslo?', { scheduler })
      .subscribe((event) => events.push(event));
    flush();
    timed.verify();
    const [first, last] = [events[0], events.at(-1)];
    expect(typesOf(events)).toEqual(expected);
    expect((last?.at ?? 0) - (first?.at ?? 0)).toBe(total);
  });
});
