import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { context, trace } from '@opentelemetry/api';
import { createAgent, type Layer, textBlock, tool } from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { agentTool } from 'millrace/teams';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { NEVER } from 'rxjs';
import { otel, type OtelOptions } from './index.js';
import { inMemory, treeOf, useContextManager } from './traces.test-support.js';

beforeEach(useContextManager);
afterEach(() => {
  context.disable();
  trace.disable();
});

type Memory = ReturnType<typeof inMemory>;

const both = [
  'invoke_agent outer',
  '  chat gpt-outer',
  '  execute_tool inner',
  '    invoke_agent inner',
  '      chat gpt-inner',
  '  chat gpt-outer',
];

/** Asks an agent that asks a sub-agent, each with layers of its own. */
const ask = async (outer: readonly (readonly Layer[])[], inner: readonly (readonly Layer[])[]) => {
  const subAgent = createAgent({
    name: 'inner',
    model: { ...scriptedModel([text('secret and private of inner')]), name: 'gpt-inner' },
    use: inner,
  });
  const asks = toolCall('inner', { user_prompt: 'secret and private question' });
  await createAgent({
    name: 'outer',
    model: { ...scriptedModel([asks], [text('secret and private of outer')]), name: 'gpt-outer' },
    tools: [agentTool(subAgent, { description: 'Answers.' })],
    use: outer,
  }).call('?');
};

/** Names, indented by their parents. */
const names = (memory: Memory): readonly string[] =>
  treeOf(memory.spans()).flatMap((line) => (/^( *\w[\w -]*?) [\d.]+-/u.exec(line) ?? []).slice(1));

const attributesOf = (memory: Memory, name: string) =>
  memory.spans().find((span) => span.name === name)?.attributes ?? {};

const textOf = (memory: Memory, name: string): string =>
  JSON.stringify(attributesOf(memory, name)['gen_ai.output.messages'] ?? 'none');

const redactor = (word: string) => (it: string) => it.replaceAll(word, '***');

describe('several otel() with one provider', () => {
  it('record each span and each metric once', async () => {
    const memory = inMemory();
    await ask([otel(memory.providers), otel(memory.providers)], [otel(memory.providers)]);
    expect(names(memory)).toEqual(both);
    const durations = (await memory.metrics()).find(
      ({ descriptor }) => descriptor.name === 'gen_ai.invoke_agent.duration',
    );
    expect(durations?.dataPoints.map(({ value }) => value)).toMatchObject([
      { count: 1 },
      { count: 1 },
    ]);
  });

  it.each<[string, OtelOptions, OtelOptions, string, string]>([
    [
      'a redactor below true',
      { content: true },
      { content: redactor('secret') },
      'secret and private',
      '*** and private',
    ],
    [
      'true below a redactor',
      { content: redactor('secret') },
      { content: true },
      '*** and private',
      '*** and private',
    ],
    [
      'two redactors',
      { content: redactor('secret') },
      { content: redactor('private') },
      '*** and private',
      '*** and ***',
    ],
    ['no content below true', { content: true }, {}, 'secret and private', 'none'],
    ['true below no content', {}, { content: true }, 'none', 'none'],
  ])('capture what all of them allow: %s', async (_what, outer, inner, ofOuter, ofInner) => {
    const memory = inMemory();
    await ask([otel({ ...memory.providers, ...outer })], [otel({ ...memory.providers, ...inner })]);
    const calls = memory.spans().filter(({ name }) => name.startsWith('invoke_agent'));
    expect(calls).toHaveLength(2);
    for (const name of ['invoke_agent inner', 'chat gpt-inner']) {
      expect(textOf(memory, name)).toContain(ofInner);
    }
    expect(textOf(memory, 'invoke_agent outer')).toContain(ofOuter);
  });

  it('redact from the inside out', async () => {
    const memory = inMemory();
    const inner = otel({ ...memory.providers, content: redactor('secret') });
    const outer = otel({ ...memory.providers, content: (it) => it.replaceAll('***', '[outer]') });
    await ask([outer], [inner]);
    expect(textOf(memory, 'chat gpt-inner')).toContain('[outer] and private');
  });

  it('take the attributes and providers of the sub-agent for its calls, then those of its caller', async () => {
    const memory = inMemory();
    const outer = otel({
      ...memory.providers,
      attributes: () => ({ tenant: 'outer', region: 'north' }),
      provider: (model) => (model === 'gpt-outer' ? 'of outer' : 'not used'),
    });
    const inner = otel({
      ...memory.providers,
      attributes: () => ({ tenant: 'inner' }),
      provider: () => 'of inner',
    });
    await ask([outer], [inner]);
    const key = 'gen_ai.provider.name';
    expect(attributesOf(memory, 'chat gpt-outer')).toMatchObject({
      tenant: 'outer',
      [key]: 'of outer',
    });
    expect(attributesOf(memory, 'chat gpt-inner')).toMatchObject({
      ...{ tenant: 'inner', region: 'north' },
      [key]: 'of inner',
    });
  });

  it('include the global one', async () => {
    const memory = inMemory();
    trace.setGlobalTracerProvider(memory.providers.tracerProvider);
    await ask([otel()], [otel({ tracerProvider: memory.providers.tracerProvider })]);
    expect(names(memory)).toEqual(both);
  });
});

describe('several otel() with providers of their own', () => {
  it('record all spans in both, each with its own content', async () => {
    const [one, two] = [inMemory(), inMemory()];
    await ask([otel(one.providers), otel({ ...two.providers, content: true })], []);
    expect(names(one)).toEqual(both);
    expect(names(two)).toEqual(both);
    expect(textOf(one, 'chat gpt-inner')).toBe('"none"');
    expect(textOf(two, 'chat gpt-inner')).toContain('secret and private');
  });

  it('apply the redactor of a sub-agent to what its caller captures, and not the other way round', async () => {
    const [one, two] = [inMemory(), inMemory()];
    const outer = otel({ ...one.providers, content: true });
    const inner = otel({ ...two.providers, content: redactor('secret') });
    await ask([outer], [inner]);
    expect(textOf(one, 'chat gpt-inner')).toContain('*** and private');
    expect(textOf(one, 'invoke_agent outer')).toContain('secret and private');
    expect(textOf(two, 'chat gpt-inner')).toContain('*** and private');
    const [plain, captured] = [inMemory(), inMemory()];
    await ask([otel(plain.providers)], [otel({ ...captured.providers, content: true })]);
    expect(textOf(plain, 'chat gpt-inner')).toBe('"none"');
    expect(textOf(captured, 'chat gpt-inner')).toContain('secret and private');
  });

  it('record a sub-agent in its own backend, below the tool that makes its call', async () => {
    const [one, two] = [inMemory(), inMemory()];
    await ask([otel(one.providers)], [otel(two.providers)]);
    expect(names(one)).toEqual(both);
    expect(two.spans().map(({ name }) => name)).toEqual(['chat gpt-inner', 'invoke_agent inner']);
    const tools = one.spans().find(({ name }) => name === 'execute_tool inner');
    expect(two.spans().at(-1)?.parentSpanContext?.spanId).toBe(tools?.spanContext().spanId);
  });

  it('record metrics once if they share the meters, and twice if not', async () => {
    const [one, two] = [inMemory(), inMemory()];
    const { tracerProvider, meterProvider } = one.providers;
    const countOf = async ({ metrics }: Memory) =>
      (await metrics())
        .filter(({ descriptor }) => descriptor.name === 'gen_ai.execute_tool.duration')
        .flatMap(({ dataPoints }) => dataPoints.map(({ value }) => value));
    const shared = otel({ tracerProvider: two.providers.tracerProvider, meterProvider });
    const metered = otel({ tracerProvider, meterProvider: two.providers.meterProvider });
    await ask([otel(one.providers), shared, metered], []);
    expect(await countOf(one)).toMatchObject([{ count: 1 }]);
    expect(await countOf(two)).toMatchObject([{ count: 1 }]);
    expect(names(one)).toEqual(both);
  });

  it('leave the first one active while tools run', async () => {
    const [one, two] = [inMemory(), inMemory()];
    const look = tool({
      name: 'look',
      description: 'Looks.',
      run: () => {
        one.tracer.startSpan('query').end();
        return [textBlock('Done.')];
      },
    });
    await createAgent({
      model: scriptedModel([toolCall('look')], [text('Yes.')]),
      tools: [look],
      use: [otel(one.providers), otel(two.providers)],
    }).call('?');
    const own = ['invoke_agent agent', '  chat scripted', '  execute_tool look'];
    expect(names(one)).toEqual([...own, '    query', '  chat scripted']);
    expect(names(two)).toEqual([...own, '  chat scripted']);
  });

  it('each link a resumed call to its own former span', async () => {
    const [one, two] = [inMemory(), inMemory()];
    const store = createCallStore(inProcessCalls());
    const durable = journal(store);
    const use = [otel(one.providers), otel(two.providers), durable];
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'Done.' });
    const agentOf = (...answers: readonly ScriptedAnswer[]) =>
      createAgent({ model: scriptedModel(...answers), tools: [look], use });
    await new Promise<void>((resolve) => {
      const call = agentOf([toolCall('look')], NEVER)
        .stream$('?', { callId: 'c' })
        .subscribe(({ type, iteration }) => {
          if (type !== 'preReasoning' || iteration !== 2) return;
          setImmediate(() => {
            call.unsubscribe();
            resolve();
          });
        });
    });
    await durable.resume(agentOf([text('Yes.')]), 'c');
    for (const memory of [one, two]) {
      const [former, resumed] = memory.spans().filter(({ name }) => name === 'invoke_agent agent');
      expect(resumed?.links.map((link) => link.context.spanId)).toEqual([
        former?.spanContext().spanId,
      ]);
    }
  });
});
