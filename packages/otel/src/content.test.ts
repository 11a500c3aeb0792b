import { describe, expect, it } from '@jest/globals';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { DiagLogLevel, diag } from '@opentelemetry/api';
import {
  createAgent,
  fallback,
  isMillraceError,
  MillraceError,
  suspend,
  textBlock,
  tool,
  toolOutput,
} from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { agentTool } from 'millrace/teams';
import { type ScriptedAnswer, scriptedModel, text, thinking, toolCall } from 'millrace/testing';
import { throwError } from 'rxjs';
import { otel, type OtelOptions } from './index.js';
import { inMemory } from './traces.test-support.js';

const image = {
  type: 'image',
  source: { kind: 'base64', mediaType: 'image/png', data: 'secret' },
} as const;

/** Makes calls with the word `secret` in each place that has content. */
const makeCalls = async (options: OtelOptions) => {
  const memory = inMemory();
  const down = () => throwError(() => new MillraceError('server', 'secret in an error'));
  const inner = createAgent({
    name: 'inner',
    instructions: 'secret instructions',
    model: scriptedModel([text('secret of inner')], [text('secret of inner')]),
  });
  const look = tool({
    name: 'look',
    description: 'secret description',
    input: jsonSchema({ type: 'object', properties: { at: { type: 'string' } } }),
    run: (_, { callId }) => {
      if (callId === 'fails') throw new Error('secret failure');
      return toolOutput({
        content: [textBlock('secret result'), image],
        details: 'secret details',
      });
    },
  });
  const wait = tool({ name: 'wait', description: 'Waits.', run: () => suspend('secret request') });
  const agentOf = (...answers: readonly ScriptedAnswer[]) =>
    createAgent({
      instructions: 'secret instructions',
      model: fallback(scriptedModel(down, down), { ...scriptedModel(...answers), name: 'other' }),
      tools: [look, wait, agentTool(inner, { description: 'secret' })],
      use: [otel({ ...memory.providers, ...options })],
    });
  const uses = [
    thinking('secret thought'),
    text('secret text'),
    toolCall('look', { at: 'secret place', 'secret key': 7 }),
    toolCall('inner', { user_prompt: 'secret prompt' }),
  ];
  await agentOf(uses, [text('secret answer')]).call('secret question');
  await agentOf(uses, [text('secret answer')]).call('secret question', { callId: 'fails' });
  await agentOf([toolCall('wait')]).call('secret question');
  const fails = agentOf(() => throwError(() => new MillraceError('auth', 'secret error')));
  const failure = await fails.call('secret question').catch((cause: unknown) => cause);
  expect(isMillraceError(failure)).toBe(true);
  return memory;
};

const written = (spans: readonly ReadableSpan[]): string =>
  JSON.stringify(
    spans.map(({ name, attributes, events, status, links }) => ({
      ...{ name, attributes, events, status },
      links: links.map((link) => link.attributes),
    })),
  );

describe('content', () => {
  it('is in no span and in no metric by default', async () => {
    const memory = await makeCalls({});
    expect(memory.spans().length).toBeGreaterThan(15);
    expect(written(memory.spans())).not.toMatch(/secret/u);
    const metrics = await memory.metrics();
    expect(metrics.length).toBeGreaterThan(3);
    expect(JSON.stringify(metrics)).not.toMatch(/secret/u);
  });

  it('is captured on demand, in the form of the conventions', async () => {
    const memory = await makeCalls({ content: true });
    const named = (name: string) =>
      memory.spans().find((span) => span.name === name)?.attributes ?? {};
    const read = (attributes: object, key: string): unknown =>
      JSON.parse(String(Reflect.get(attributes, key)));
    const chat = named('chat other');
    expect(read(chat, 'gen_ai.system_instructions')).toEqual([
      { type: 'text', content: 'secret instructions' },
    ]);
    expect(read(chat, 'gen_ai.input.messages')).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'secret question' }] },
    ]);
    const parts = [
      { type: 'reasoning', content: 'secret thought' },
      { type: 'text', content: 'secret text' },
      { type: 'tool_call', name: 'look', arguments: { at: 'secret place', 'secret key': 7 } },
      { type: 'tool_call', name: 'inner', arguments: { user_prompt: 'secret prompt' } },
    ];
    expect(read(chat, 'gen_ai.output.messages')).toEqual([
      { role: 'assistant', parts, finish_reason: 'tool_call' },
    ]);
    const look = named('execute_tool look');
    expect(read(look, 'gen_ai.tool.call.arguments')).toEqual({
      at: 'secret place',
      'secret key': 7,
    });
    expect(read(look, 'gen_ai.tool.call.result')).toEqual([
      { type: 'text', content: 'secret result' },
      { type: 'image' },
    ]);
    const call = named('invoke_agent agent');
    expect(read(call, 'gen_ai.input.messages')).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'secret question' }] },
    ]);
    expect(read(call, 'gen_ai.output.messages')).toEqual([
      {
        role: 'assistant',
        parts: [{ type: 'text', content: 'secret answer' }],
        finish_reason: 'stop',
      },
    ]);
    const failed = memory.spans().at(-1);
    expect(failed?.status.message).toBe('secret error');
  });

  it('is redacted string by string, keys and numbers included', async () => {
    const memory = await makeCalls({ content: (it) => it.replace(/secret|^7$/gu, '***') });
    expect(written(memory.spans())).not.toMatch(/secret/u);
    const look = memory.spans().find(({ name }) => name === 'execute_tool look')?.attributes;
    expect(look?.['gen_ai.tool.call.arguments']).toBe('{"at":"*** place","*** key":"***"}');
  });

  it('keeps the structure of the conventions, no matter what the function replaces', async () => {
    const memory = inMemory();
    const structure = /user|assistant|tool|text|role|parts|type|content|stop|look/gu;
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'a user' });
    const input = { role: 'user', text: ['tool', 5] };
    const agent = createAgent({
      model: scriptedModel([toolCall('look', input, 'c')], [text('no user')]),
      tools: [look],
      use: [otel({ ...memory.providers, content: (it) => it.replace(structure, '*') })],
    });
    await agent.call('the user');
    const [first, , second] = memory.spans().map(({ attributes }) => attributes);
    const args = { '*': '*', '*_': ['*', 5] };
    const call = { type: 'tool_call', id: 'c', name: 'look', arguments: args };
    const parsed = (value: unknown): unknown => JSON.parse(String(value));
    expect(parsed(first?.['gen_ai.output.messages'])).toEqual([
      { role: 'assistant', parts: [call], finish_reason: 'tool_call' },
    ]);
    expect(parsed(second?.['gen_ai.input.messages'])).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'the *' }] },
      { role: 'assistant', parts: [call] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c', response: 'a *' }] },
    ]);
    expect(parsed(second?.['gen_ai.output.messages'])).toEqual([
      { role: 'assistant', parts: [{ type: 'text', content: 'no *' }], finish_reason: 'stop' },
    ]);
  });

  it('keeps values whose keys become equal', async () => {
    const memory = inMemory();
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'Done.' });
    const input = { 'key a': 1, 'key b': 2, 'key c': 3, key_: 4 };
    const agent = createAgent({
      model: scriptedModel([toolCall('look', input)], [text('Yes.')]),
      tools: [look],
      use: [otel({ ...memory.providers, content: (it) => it.replace(/key [abc]/gu, 'key') })],
    });
    await agent.call('?');
    const span = memory.spans().find(({ name }) => name === 'execute_tool look');
    const args = String(span?.attributes['gen_ai.tool.call.arguments']);
    expect(Object.values(JSON.parse(args) as object)).toEqual([1, 2, 3, 4]);
  });

  it('is left out if the function throws, which fails no call', async () => {
    const logged: string[] = [];
    const log = (message: string) => void logged.push(message);
    diag.setLogger(
      { error: log, warn: log, info: log, debug: log, verbose: log },
      { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
    );
    const fail = () => {
      throw new Error('No.');
    };
    const memory = await makeCalls({
      content: fail,
      attributes: fail,
      provider: fail,
      parent: fail,
    });
    diag.disable();
    expect(written(memory.spans())).not.toMatch(/secret/u);
    expect(new Set(logged)).toEqual(
      new Set(
        ['content', 'attributes', 'provider', 'parent'].map(
          (option) => `otel(): '${option}' threw an error.`,
        ),
      ),
    );
  });
});

describe('options', () => {
  it.each([
    [{ contents: true }, /has no option 'contents'. Did you mean 'content'\?/u],
    [{ content: 'yes' }, /'content' must be true, false or a function/u],
    [{ attributes: {} }, /'attributes' must be a function/u],
    [{ tracerProvider: {} }, /'tracerProvider' must be a TracerProvider/u],
    [{ meterProvider: {} }, /'meterProvider' must be a MeterProvider/u],
  ])('%j are refused', (options, message) => {
    expect(() => otel(options as OtelOptions)).toThrow(message);
  });
});
