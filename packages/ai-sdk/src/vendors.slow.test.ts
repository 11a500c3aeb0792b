import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type AgentEvent,
  createAgent,
  isMillraceError,
  output,
  type Reply,
  textOf,
  tool,
} from 'millrace';
import { modelContract } from 'millrace/testing';
import { inspect } from 'node:util';
import { lastValueFrom, toArray } from 'rxjs';
import { z } from 'zod';
import { aiSdkModel } from './index.js';
import {
  answering,
  cutting,
  failing,
  type Response,
  serve,
  type VendorServer,
} from './serve.test-support.js';
import { secret, vendors } from './vendors.test-support.js';

let servers: VendorServer[] = [];
const playing = async (...list: readonly Response[]): Promise<VendorServer> => {
  const server = await serve(...list);
  servers.push(server);
  return server;
};
afterEach(async () => {
  await Promise.all(servers.map((it) => it.close()));
  servers = [];
});

const retry = { minMs: 1, maxMs: 2, jitter: 0 };
const errorOf = async (reply: Promise<Reply>): Promise<unknown> =>
  reply.then(
    () => undefined,
    (error: unknown) => error,
  );
const deltasOf = (events: readonly AgentEvent[], kind: 'text' | 'thinking'): readonly string[] =>
  events.flatMap((it) => (it.type === 'reasoningChunk' && it.kind === kind ? [it.delta] : []));
const said = { text: ['It ', 'snows.'] };

describe.each(vendors)(
  '$name',
  ({ wire, create, keeps, cites, caches, outputTokens, settings }) => {
    const weather = tool({
      name: 'weather',
      description: 'Returns the weather.',
      input: z.object({ city: z.string() }),
      run: ({ city }) => `Snow in ${city}.`,
    });
    const model = (url: string, options = {}) =>
      aiSdkModel(create(url), { retry, settings, ...options });

    it('streams text, and reports its usage and facts', async () => {
      const { url } = await playing(answering(wire, said));
      const agent = createAgent({ model: model(url) });
      const events = await lastValueFrom(agent.stream$('Weather?').pipe(toArray()));
      const deltas = deltasOf(events, 'text');
      const reply = events.flatMap((it) => (it.type === 'postCall' ? [it.reply] : []))[0];
      expect(deltas.join('')).toBe('It snows.');
      expect(deltas.length).toBeGreaterThan(1);
      expect(reply?.usage).toEqual({
        inputTokens: caches ? 6 : 10,
        outputTokens,
        cacheReadTokens: caches ? 4 : 0,
        cacheWriteTokens: 0,
      });
    });

    it('runs parallel tool calls, and sends their results back', async () => {
      const calls = ['Oslo', 'Rome'].map((city, index) => ({
        id: `call_${index}`,
        name: 'weather',
        json: ['{"city":', `"${city}"}`],
      }));
      const server = await playing(answering(wire, { calls }), answering(wire, said));
      const agent = createAgent({ model: model(server.url), tools: [weather] });
      const reply = await agent.call('Weather in Oslo and Rome?');
      expect(reply.toolCalls.map((it) => it.output)).toEqual(['Snow in Oslo.', 'Snow in Rome.']);
      expect(textOf(reply)).toBe('It snows.');
      expect(server.bodies).toHaveLength(2);
      expect(server.bodies[1]).toContain('Snow in Oslo.');
      expect(server.bodies[1]).toContain('Snow in Rome.');
    });

    it(`keeps of a thought: ${keeps}`, async () => {
      const thought = { text: 'I look it up.', signature: 'c2lnbmF0dXJlLW9mLWEtdGhvdWdodA==' };
      const calls = [{ id: 'call_1', name: 'weather', json: ['{"city":"Oslo"}'] }];
      const server = await playing(answering(wire, { thought, calls }), answering(wire, said));
      const agent = createAgent({ model: model(server.url), tools: [weather] });
      const events = await lastValueFrom(agent.stream$('Weather?').pipe(toArray()));
      const thoughts = deltasOf(events, 'thinking');
      expect(thoughts.join('')).toBe(thought.text);
      expect(server.bodies[1]?.includes(thought.signature)).toBe(keeps === 'signature');
      expect(server.bodies[1]?.includes(thought.text)).toBe(keeps !== 'nothing');
    });

    it('sends images', async () => {
      const server = await playing(answering(wire, said));
      const source = {
        kind: 'base64',
        mediaType: 'image/png',
        data: 'iVBORw0KGgoAAAANSUhEUg==',
      } as const;
      const content = [
        { type: 'text', text: 'What is it?' } as const,
        { type: 'image', source } as const,
      ];
      await createAgent({ model: model(server.url) }).call({ role: 'user', content });
      expect(server.bodies[0]).toContain(source.data);
    });

    it('answers in the form of a schema, natively and with other tools', async () => {
      const schema = z.object({ celsius: z.number() });
      const native = await playing(answering(wire, { text: ['{"celsius":', '-3}'] }));
      const one = createAgent({
        model: model(native.url, { structuredOutput: 'native' }),
        use: [output(schema)],
      });
      const first = await one.call('How cold is it?');
      expect(native.bodies[0]).toContain('celsius');
      expect(first.output).toEqual({ celsius: -3 });
      const calls = [{ id: 'call_1', name: 'final_answer', json: ['{"celsius":-3}'] }];
      const byTool = await playing(answering(wire, { calls }));
      const other = createAgent({
        model: model(byTool.url),
        tools: [weather],
        use: [output(schema)],
      });
      const reply = await other.call('How cold is it?');
      expect(reply.output).toEqual({ celsius: -3 });
    });

    if (cites) {
      it('shows sources as citations', async () => {
        const source = { url: 'https://weather.example/oslo', title: 'Oslo' };
        const { url } = await playing(answering(wire, { ...said, source }));
        const reply = await createAgent({ model: model(url) }).call('Weather?');
        const [block] = reply.content.filter((it) => it.type === 'text');
        expect(block?.citations?.map((it) => it.url)).toEqual([source.url]);
      });
    }

    describe.each(modelContract(() => contracted))('is a model that', ({ name, run }) => {
      it(name, async () => {
        const { url } = await playing(answering(wire, said));
        contracted = model(url);
        await run();
      });
    });
    let contracted = model('http://127.0.0.1:9');

    describe('faults', () => {
      it('an answer whose stream ends early is an error, and is asked for again', async () => {
        const server = await playing(cutting(wire, said), answering(wire, said));
        const error = await errorOf(createAgent({ model: model(server.url) }).call('Weather?'));
        expect(error).toMatchObject({
          code: 'invalidResponse',
          retryable: true,
          partial: 'It snows.',
        });
        const silent = await playing(cutting(wire, {}), answering(wire, said));
        const reply = await createAgent({ model: model(silent.url) }).call('Weather?');
        expect(textOf(reply)).toBe('It snows.');
        expect(silent.bodies).toHaveLength(2);
      });

      it('a tool call of a cut answer does not run', async () => {
        const calls = [{ id: 'call_1', name: 'weather', json: ['{"city":"Oslo"}'] }];
        const { url } = await playing(cutting(wire, { calls }));
        const runs: unknown[] = [];
        const spy = {
          ...weather,
          run$: (...given: Parameters<typeof weather.run$>) => (
            runs.push(given),
            weather.run$(...given)
          ),
        };
        const agent = createAgent({ model: model(url, { retry: false }), tools: [spy] });
        expect(await errorOf(agent.call('Weather?'))).toMatchObject({ code: 'invalidResponse' });
        expect(runs).toEqual([]);
      });

      it('a lost connection is an error', async () => {
        const { url } = await playing(cutting(wire, said, true));
        const error = await errorOf(createAgent({ model: model(url) }).call('Weather?'));
        expect(
          isMillraceError(error) && ['connection', 'invalidResponse'].includes(error.code),
        ).toBe(true);
        expect(error).toMatchObject({ retryable: true });
      });

      it('an error within an answer is an error', async () => {
        const { url } = await playing(failing(wire, said));
        const error = await errorOf(createAgent({ model: model(url) }).call('Weather?'));
        expect(isMillraceError(error)).toBe(true);
        expect(error).toMatchObject({ retryable: true });
      });

      it('a limit of the rate is waited for', async () => {
        const body = JSON.stringify({
          error: { message: 'Slow down.', code: 'rate_limited' },
          message: 'Slow down.',
        });
        const headers = { 'content-type': 'application/json', 'retry-after-ms': '3' };
        const server = await playing(
          { status: 429, headers, frames: [body] },
          answering(wire, said),
        );
        const waits: number[] = [];
        const agent = createAgent({ model: model(server.url) });
        const events = await lastValueFrom(agent.stream$('Weather?').pipe(toArray()));
        for (const it of events) if (it.type === 'modelRetry') waits.push(it.waitMs);
        expect(waits).toEqual([3]);
        expect(server.bodies).toHaveLength(2);
      });

      it('a rejected key is not shown, and not tried again', async () => {
        const message = `Incorrect API key provided: ${secret}.`;
        const body = JSON.stringify({
          error: { message, code: 'invalid_api_key', type: 'authentication_error' },
          message,
        });
        const headers = { 'content-type': 'application/json', 'x-request-id': 'req_1' };
        const server = await playing({ status: 401, headers, frames: [body] });
        const error = await errorOf(createAgent({ model: model(server.url) }).call('Weather?'));
        expect(error).toMatchObject({
          code: 'auth',
          retryable: false,
          status: 401,
          requestId: 'req_1',
        });
        expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(secret);
        expect(server.bodies).toHaveLength(1);
      });
    });
  },
);
