import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createAgent, output, tool, type Tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { record } from 'millrace/testing';
import {
  type Answer,
  bytes,
  type FaultServer,
  forever,
  type Played,
  startFaultServer,
  streamed,
  streamHeaders,
  streamOf,
  wires,
} from '@millrace/fault-server';
import { toolNames } from '@millrace/wire';
import { subjects } from './subjects.js';

// Real sockets and processes may have to wait for a busy machine.
jest.setTimeout(180_000);

let server: FaultServer;

beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());

const weather = tool({
  name: 'weather',
  description: 'Tells the weather of a city.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
  }),
  run: ({ city }) => `Sunny in ${city}.`,
});

/** A tool that says its name, whatever name that is. */
const named = (name: string): Tool => ({
  ...tool({ name: 'named', description: 'Says its name.', run: () => `This is ${name}.` }),
  name,
});

const asks: Answer = {
  thinking: 'Two cities, two questions.',
  text: 'Let me look.',
  toolCalls: [{ arguments: ['{"city":', '"Oslo"}'] }, { arguments: '{"city":"Rome"}' }],
  usage: { input: 100, cached: 40, output: 20 },
};
const answers: Answer = {
  text: 'Sunny in both.',
  usage: { input: 150, cached: 100, output: 10 },
};

/** Resolves when the server has told so often that it has written nothing more. */
const halted = async (requests: Played['requests']): Promise<void> => {
  let last = 0;
  for (let same = 0; same < 300; same += 1) {
    const bytesWritten = (await requests())[0]?.bytesWritten ?? 0;
    if (bytesWritten !== last || bytesWritten === 0) same = 0;
    last = bytesWritten;
  }
};

describe.each(wires)('the same agent over %s', (wire) => {
  it('L1, X16: thinks, speaks, calls two tools at the same time and answers, and the vendor takes every request', async () => {
    const { url, requests } = await server.play({
      responses: [asks, answers].map((answer) => streamed(streamOf(wire, answer))),
    });
    const agent = createAgent({ model: subjects[wire](url), tools: [weather] });
    const events = await record(agent.stream$('How is the weather in Oslo and in Rome?'));
    const reply = events.at(-1);
    expect(reply).toMatchObject({
      type: 'postCall',
      reply: {
        reason: 'answer',
        iterations: 2,
        toolCalls: [
          { input: { city: 'Oslo' }, output: 'Sunny in Oslo.' },
          { input: { city: 'Rome' }, output: 'Sunny in Rome.' },
        ],
        usage: { inputTokens: 110, cacheReadTokens: 140, outputTokens: 30 },
      },
    });
    const deltasOf = (kind: string): string =>
      events
        .flatMap((event) =>
          event.type === 'reasoningChunk' && event.kind === kind ? [event.delta] : [],
        )
        .join('');
    expect(deltasOf('thinking')).toBe('Two cities, two questions.');
    expect(deltasOf('text')).toBe('Let me look.Sunny in both.');
    expect((await requests()).map(({ violations }) => violations)).toEqual([[], []]);
  });

  it('X14: calls tools of any name, and names them in the reply as they are', async () => {
    const names = [
      ...[
        '😀',
        '👩‍👩‍👧‍👦 weather',
        '天気',
        'שלום עולם',
        '\u202egnp.exe',
        'é',
        'e\u0301',
        '\ud800',
        '\udbff',
      ],
      // Code points up to the most that a name may have.
      ...['x'.repeat(64), 'x'.repeat(65), 'x'.repeat(256), '𝒳'.repeat(255), '𝒳'.repeat(256)],
      // Nothing but the hash tells these apart, and the last one is what the first is called on the wire.
      ...['a.b', 'a b', 'a/b', 'a_b', toolNames(['a.b']).toWire('a.b')],
      ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', ' ', '"', '</tool>', '../../x'],
    ];
    const onWire = toolNames(names);
    const toolCalls = names.map((name) => ({ name: onWire.toWire(name), arguments: '{}' }));
    const { url, requests } = await server.play({
      responses: [{ toolCalls }, answers].map((answer) => streamed(streamOf(wire, answer))),
    });
    const agent = createAgent({ model: subjects[wire](url), tools: names.map(named) });
    const events = await record(agent.stream$('Use them all.'));
    const last = events.at(-1);
    expect(last?.type === 'postCall' && last.reply.toolCalls).toMatchObject(
      names.map((name) => ({ name, output: `This is ${name}.`, isError: false })),
    );
    const called = events.flatMap((event) =>
      event.type === 'preActing' ? [event.toolCall.name] : [],
    );
    expect(called).toEqual(names);
    // The vendor takes each name, and in the history each call is named as its tool is declared.
    const seen = await requests();
    expect(seen.map(({ violations }) => violations)).toEqual([[], []]);
    for (const { name } of toolCalls) {
      const uses = JSON.stringify(seen[1]?.body).split(`"name":${JSON.stringify(name)}`).length - 1;
      expect(uses).toBe(2);
    }
  });

  it('X14: forces a tool of any name', async () => {
    const name = 'wetter/münchen 🌦️';
    const wireName = toolNames([name]).toWire(name);
    const { url, requests } = await server.play({
      responses: [{ toolCalls: [{ name: wireName, arguments: '{}' }] }, answers].map((answer) =>
        streamed(streamOf(wire, answer)),
      ),
    });
    const agent = createAgent({ model: subjects[wire](url), tools: [named(name)] });
    const reply = await agent.call('?', { request: { toolChoice: { name } } });
    expect(reply.toolCalls).toMatchObject([{ name, output: `This is ${name}.` }]);
    const [first] = await requests();
    expect(first?.violations).toEqual([]);
    expect(JSON.stringify(first?.body)).toMatch(
      new RegExp(`"tool_choice":\\{[^}]*(?:\\{[^}]*)?"name":"${wireName}"`),
    );
  });

  it('R3: holds the model to a schema in the way that the vendor has', async () => {
    const { url, requests } = await server.play({
      responses: [streamed(streamOf(wire, { text: ['{"city":', '"Oslo"}'] }))],
    });
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    } as const;
    const reply = await createAgent({ model: subjects[wire](url) }).call('Where?', {
      use: [output(jsonSchema(schema))],
    });
    expect(reply.output?.city).toBe('Oslo');
    const [request] = await requests();
    expect(request?.violations).toEqual([]);
    expect(JSON.stringify(request?.body)).toContain('json_schema');
  });

  it('I16: a slow consumer holds the vendor back at its socket, and leaving closes it', async () => {
    const [first = '', ...rest] = streamOf(wire, {
      text: Array.from({ length: 6 }, () => 'x'.repeat(50)),
    });
    const at = rest.findIndex((event) => event.includes('xxxx'));
    const opening = rest.slice(0, at).join('');
    // Repeated events of one number would be dropped as the same one.
    const delta = (rest[at] ?? '').replace(/,?"sequence_number":\d+/, '');
    const { url, requests, closed } = await server.play({
      responses: [[streamHeaders, bytes(first + opening), forever(delta)]],
    });
    const model = subjects[wire](url);
    let seen = 0;
    for await (const event of createAgent({ model }).stream('?')) {
      if (event.type !== 'reasoningChunk') continue;
      seen += 1;
      // The server writes as fast as the socket takes it: it must come to a halt while nobody reads.
      if (seen === 1) await halted(requests);
      if (seen === 20) break;
    }
    const { closedEarly, bytesWritten } = await closed(0);
    expect(closedEarly).toBe(true);
    expect(seen).toBe(20);
    expect(bytesWritten).toBeLessThan(30_000_000);
  });

  it('I5: unsubscribing closes the socket, also before the first byte', async () => {
    const { url, requests, closed } = await server.play({ responses: [[{ type: 'stall' }]] });
    const agent = createAgent({ model: subjects[wire](url) });
    const call = agent.stream$('?').subscribe();
    while ((await requests()).length === 0);
    call.unsubscribe();
    expect((await closed(0)).closedEarly).toBe(true);
  });
});
