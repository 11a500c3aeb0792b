import { afterEach, describe, expect, it } from '@jest/globals';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import {
  createAgent,
  fallback,
  interruptOn,
  MillraceError,
  type Model,
  retry,
  suspend,
  tool,
} from 'millrace';
import { createCallStore, fork$, inProcessCalls, journal } from 'millrace/journal';
import { agentTool } from 'millrace/teams';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { firstValueFrom, NEVER, Subject, throwError } from 'rxjs';
import { otel, type OtelOptions } from './index.js';
import { type ReceivedSpan, startReceiver } from './otlp-receiver.test-support.js';

const down = () => throwError(() => new MillraceError('server', 'Down.'));
const named = (name: string, model: Model): Model => ({ ...model, name });

/** Calls of all kinds: parallel tools, retry, fallback, sub-agent, suspension, fork, error, interrupt and cancellation. */
const makeCalls = async (options: OtelOptions): Promise<void> => {
  const usage = { type: 'usage', usage: { inputTokens: 9, outputTokens: 3 } } as const;
  const inner = createAgent({ name: 'inner', model: scriptedModel([text('Yes.'), usage]) });
  const interrupts = new Subject<string>();
  const tools = [
    agentTool(inner, { description: 'Answers.' }),
    tool({ name: 'look', description: 'Looks.', run: () => Promise.resolve('A mill.') }),
    tool({ name: 'wait', description: 'Waits.', run: () => suspend() }),
    tool({
      name: 'hang',
      description: 'Hangs.',
      run: () => {
        setImmediate(() => interrupts.next('Enough.'));
        return NEVER;
      },
    }),
  ];
  const durable = journal(createCallStore(inProcessCalls()));
  const agentOf = (model: Model) => createAgent({ model, tools, use: [otel(options), durable] });
  const first = retry(scriptedModel(down, down, down, down), { attempts: 2, minMs: 1 });
  const both = [toolCall('inner', { user_prompt: '?' }), toolCall('look', {})];
  const second = named('gpt-b', scriptedModel([...both, usage], [text('Yes.')]));
  const agent = agentOf(fallback(named('gpt-a', first), second));
  await agent.call('?', { callId: 'c' });
  const again = agentOf(scriptedModel([text('No.')]));
  const fork = await firstValueFrom(fork$(durable.store, 'c', { at: '2', callId: 'f' }));
  await durable.resume(again, fork);
  await agentOf(scriptedModel([toolCall('wait')])).call('?');
  const fails = agentOf(scriptedModel(() => throwError(() => new MillraceError('auth', 'No.'))));
  await fails.call('?').catch(() => undefined);
  const hangs = () => agentOf(scriptedModel([toolCall('hang')]));
  await hangs().call('?', { use: [interruptOn(interrupts)] });
  const call = hangs().call$('?').subscribe();
  await firstValueFrom(interrupts);
  call.unsubscribe();
};

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** What the receiver got from the exporters, beside what was exported in this process. */
const exported = async () => {
  const receiver = await startReceiver();
  closing.push(receiver.close);
  const inProcess = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [
      new BatchSpanProcessor(new OTLPTraceExporter({ url: `${receiver.url}/v1/traces` })),
      new SimpleSpanProcessor(inProcess),
    ],
  });
  const exporter = new OTLPMetricExporter({ url: `${receiver.url}/v1/metrics` });
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  await makeCalls({ tracerProvider, meterProvider });
  const names = inProcess.getFinishedSpans().map(({ name }) => name);
  await tracerProvider.shutdown();
  await meterProvider.shutdown();
  return { ...receiver, names };
};

describe('a receiver of OTLP', () => {
  it('gets valid spans: every parent and every link exists, and lasts as long as what is below it', async () => {
    const { spans, problems, scopes, names } = await exported();
    expect(problems).toEqual([]);
    expect(scopes).toEqual(new Set(['@millrace/otel']));
    expect(spans.map(({ name }) => name).sort()).toEqual(names.toSorted());
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    expect(byId.size).toBe(spans.length);
    const within = (span: ReceivedSpan, parent: ReceivedSpan | undefined): boolean =>
      parent?.traceId === span.traceId && parent.start <= span.start && span.end <= parent.end;
    const children = spans.filter(({ parentSpanId }) => parentSpanId !== '');
    expect(children.length).toBeGreaterThan(12);
    expect(children.filter((it) => !within(it, byId.get(it.parentSpanId)))).toEqual([]);
    const inTime = ({ start, end, events }: ReceivedSpan): boolean =>
      events.every(({ time }) => start <= time && time <= end);
    expect(spans.filter((span) => !inTime(span))).toEqual([]);
    const linked = spans.flatMap(({ links }) => links.map(({ spanId }) => byId.get(spanId)?.name));
    expect(linked).toEqual(['invoke_agent agent']);
  });

  it('gets the kinds, states and typed attributes of the conventions', async () => {
    const { spans } = await exported();
    const roots = spans.filter(({ parentSpanId }) => parentSpanId === '');
    expect(
      roots.map(({ status, attributes }) => [status, attributes['millrace.reply.reason']]),
    ).toEqual([
      ['UNSET', 'answer'],
      ['UNSET', 'answer'],
      ['UNSET', 'suspended'],
      ['ERROR', undefined],
      ['UNSET', 'interrupted'],
      ['UNSET', 'aborted'],
    ]);
    const operations = new Set(
      spans.map(({ kind, attributes }) => `${kind} ${String(attributes['gen_ai.operation.name'])}`),
    );
    expect(operations).toEqual(
      new Set(['INTERNAL invoke_agent', 'CLIENT chat', 'INTERNAL execute_tool']),
    );
    const chat = spans.find(
      ({ name, attributes }) => name === 'chat gpt-b' && 'gen_ai.usage.input_tokens' in attributes,
    );
    expect(chat?.attributes).toMatchObject({
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-b',
      'gen_ai.request.stream': true,
      'gen_ai.response.finish_reasons': ['tool_call'],
      'gen_ai.usage.input_tokens': 9,
      'gen_ai.usage.output_tokens': 3,
      'millrace.request.attempt': 3,
    });
  });

  it('gets metrics whose buckets add up', async () => {
    const { metrics, spans, problems } = await exported();
    expect(problems).toEqual([]);
    const count = (name: string) => spans.filter((span) => span.name.startsWith(name)).length;
    expect([...metrics].sort((a, b) => a.name.localeCompare(b.name))).toEqual([
      { name: 'gen_ai.client.operation.duration', unit: 's', count: count('chat') },
      { name: 'gen_ai.client.operation.time_to_first_chunk', unit: 's', count: count('chat') - 5 },
      { name: 'gen_ai.client.token.usage', unit: '{token}', count: 4 },
      { name: 'gen_ai.execute_tool.duration', unit: 's', count: count('execute_tool') },
      { name: 'gen_ai.invoke_agent.duration', unit: 's', count: count('invoke_agent') },
      { name: 'millrace.errors', unit: '{error}', count: 6 },
    ]);
  });
});
