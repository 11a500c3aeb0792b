import { createMCPClient } from '@ai-sdk/mcp';
import { dynamicTool, jsonSchema, tool as aiTool, zodSchema } from '@ai-sdk/provider-utils';
import { describe, expect, it } from '@jest/globals';
import { approval, createAgent, type Tool } from 'millrace';
import { scriptedModel, text, toolCall, toolContract } from 'millrace/testing';
import { lastValueFrom, toArray } from 'rxjs';
import { z } from 'zod';
import { fromAiSdkTools } from './index.js';

const callOf = (tools: readonly Tool[], input: unknown, use = {}) => {
  const [{ name } = { name: '' }] = tools;
  const model = scriptedModel(
    [toolCall(name, input as Record<string, unknown>, 'c1')],
    [text('Done.')],
  );
  return { model, agent: createAgent({ model, tools, ...use }) };
};

const cities = z.object({ city: z.string() });

describe('a tool of the AI SDK', () => {
  it.each([
    ['zod', cities],
    ['a schema of zod', zodSchema(cities)],
    ['a lazy schema', () => zodSchema(cities)],
    [
      'JSON Schema',
      jsonSchema({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }),
    ],
  ])('with %s is checked, and gets its input, id and signal', async (_, inputSchema) => {
    const seen: unknown[] = [];
    const weather = {
      description: 'Returns the weather.',
      inputSchema,
      execute: (
        input: unknown,
        { toolCallId, abortSignal }: { toolCallId: string; abortSignal: AbortSignal },
      ) => {
        seen.push(input, toolCallId, abortSignal.aborted);
        return Promise.resolve({ celsius: -3 });
      },
    };
    const tools = fromAiSdkTools({ weather });
    expect(tools[0]?.inputSchema).toMatchObject({ properties: { city: { type: 'string' } } });
    const reply = await callOf(tools, { city: 'Oslo' }).agent.call('Weather?');
    expect(seen).toEqual([{ city: 'Oslo' }, 'c1', false]);
    expect(reply.toolCalls[0]?.output).toBe('{"celsius":-3}');
    const wrong = await callOf(tools, { city: 1 }).agent.call('Weather?');
    expect(wrong.toolCalls[0]?.isError).toBe(true);
    expect(seen).toHaveLength(3);
  });

  it.each([
    ['a Promise', Promise.resolve({}), 'not a Promise: await it'],
    ['a list', [{ inputSchema: cities }], 'takes tools by name'],
    ['nothing', undefined, 'takes tools by name'],
  ])('is refused in %s', (_, tools, why) => {
    expect(() => fromAiSdkTools(tools as never)).toThrow(why);
  });

  it('keeps the contract of tools', async () => {
    const [tool] = fromAiSdkTools({
      weather: aiTool({
        description: 'w',
        inputSchema: cities,
        execute: ({ city }) => `Snow in ${city}.`,
      }),
    });
    if (tool === undefined) throw new Error('There is no tool.');
    for (const { run } of toolContract(() => tool, {
      valid: [{ city: 'Oslo' }],
      invalid: [{ city: 1 }],
    }))
      await run();
  });

  it('its own validation counts, too', async () => {
    const inputSchema = jsonSchema<{ n: number }>(
      { type: 'object', properties: { n: { type: 'number' } } },
      {
        validate: (value) =>
          (value as { n: number }).n > 0
            ? { success: true, value: { n: (value as { n: number }).n * 2 } }
            : { success: false, error: new Error('n must be positive') },
      },
    );
    const double = aiTool({ description: 'd', inputSchema, execute: ({ n }) => n });
    const tools = fromAiSdkTools({ double });
    expect((await callOf(tools, { n: 2 }).agent.call('?')).toolCalls[0]?.output).toBe('4');
    const denied = (await callOf(tools, { n: -2 }).agent.call('?')).toolCalls[0];
    expect(denied).toMatchObject({ isError: true });
    expect(denied?.output).toContain('n must be positive');
  });

  it('that yields shows progress, and its last value is the output', async () => {
    const count = aiTool({
      description: 'c',
      inputSchema: z.object({}),
      async *execute() {
        yield await Promise.resolve('one');
        yield 'two';
      },
    });
    const { agent } = callOf(fromAiSdkTools({ count }), {});
    const events = await lastValueFrom(agent.stream$('?').pipe(toArray()));
    expect(events.filter(({ type }) => type === 'actingChunk')).toHaveLength(2);
    expect(events.find((it) => it.type === 'postCall')?.reply.toolCalls[0]?.output).toBe('two');
  });

  it('shows the model what toModelOutput returns', async () => {
    const draw = aiTool({
      description: 'd',
      inputSchema: z.object({}),
      execute: () => ({ id: 7 }),
      toModelOutput: ({ output }) => ({
        type: 'content' as const,
        value: [
          { type: 'text' as const, text: `Image ${output.id}` },
          { type: 'image-data' as const, data: 'AQI=', mediaType: 'image/png' },
        ],
      }),
    });
    const { agent, model } = callOf(fromAiSdkTools({ draw }), {});
    await agent.call('?');
    expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
      {
        content: [
          { type: 'text', text: 'Image 7' },
          { type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: 'AQI=' } },
        ],
      },
    ]);
  });

  it('that throws is reported to the model; without execute it is suspended', async () => {
    const fails = dynamicTool({
      description: 'f',
      inputSchema: z.object({}),
      execute: () => Promise.reject(new Error('No disk.')),
    });
    const failed = await callOf(fromAiSdkTools({ fails }), {}).agent.call('?');
    expect(failed.toolCalls[0]).toMatchObject({ isError: true, output: 'Failed: No disk.' });
    const ask = aiTool({ description: 'a', inputSchema: z.object({}), outputSchema: z.string() });
    expect((await callOf(fromAiSdkTools({ ask }), {}).agent.call('?')).reason).toBe('suspended');
  });

  it('that needs approval does not run without it', async () => {
    const runs: unknown[] = [];
    const rm = aiTool({
      description: 'r',
      inputSchema: z.object({ path: z.string() }),
      needsApproval: ({ path }) => path.startsWith('/'),
      execute: ({ path }) => runs.push(path),
    });
    await callOf(fromAiSdkTools({ rm }), { path: '/' }).agent.call('?');
    expect(runs).toEqual([]);
    await callOf(fromAiSdkTools({ rm }), { path: 'a' }).agent.call('?');
    const approve = () => true;
    await callOf(fromAiSdkTools({ rm }, { approve }), { path: '/b' }).agent.call('?');
    const always = { ...rm, needsApproval: true };
    await callOf(fromAiSdkTools({ rm: always }), { path: 'c' }).agent.call('?');
    await callOf(
      fromAiSdkTools({ rm: always }),
      { path: 'd' },
      { use: [approval(approve)] },
    ).agent.call('?');
    expect(runs).toEqual(['a', '/b']);
  });

  it('that cannot be used is a config error that names it', () => {
    const config = (tools: object) => () => fromAiSdkTools(tools as never);
    expect(config({ x: { type: 'provider', id: 'a.b', args: {} } })).toThrow(/'x'.*builtInTools/);
    expect(config({ x: { inputSchema: undefined } })).toThrow(/'x'.*no input schema/);
    expect(config({ x: null })).toThrow(/'x'/);
    const late = jsonSchema(Promise.resolve({ type: 'object' as const }));
    expect(config({ x: { inputSchema: late } })).toThrow(/'x'.*await it/);
  });
});

it('tools of the MCP client of the AI SDK are tools', async () => {
  const answers: Record<string, unknown> = {
    initialize: {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 's', version: '1' },
    },
    'tools/list': {
      tools: [
        {
          name: 'echo',
          description: 'e',
          inputSchema: { type: 'object', properties: { say: { type: 'string' } } },
        },
      ],
    },
    'tools/call': { content: [{ type: 'text', text: 'Hi!' }], isError: true },
  };
  const transport = {
    start: () => Promise.resolve(),
    close: () => Promise.resolve(),
    onmessage: undefined as ((message: never) => void) | undefined,
    send: (message: { id?: unknown; method?: string }) => {
      const result = answers[message.method ?? ''];
      if (message.id !== undefined)
        this_.onmessage?.({ jsonrpc: '2.0', id: message.id, result } as never);
      return Promise.resolve();
    },
  };
  const this_ = transport;
  const client = await createMCPClient({ transport: transport as never });
  const reply = await callOf(fromAiSdkTools(await client.tools()), { say: 'Hi!' }).agent.call('?');
  expect(reply.toolCalls[0]).toMatchObject({ name: 'echo', output: 'Hi!', isError: true });
  await client.close();
});
