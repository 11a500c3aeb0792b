import { describe, expect, it } from '@jest/globals';
import type { Attributes } from '@opentelemetry/api';
import { createAgent, MillraceError, retry, tool } from 'millrace';
import { createSemaphore, limitCalls, limitConcurrency } from 'millrace/traffic';
import { finish, marbles, scriptedModel, text, toolCall } from 'millrace/testing';
import { map, mergeMap, NEVER, throwError, timer } from 'rxjs';
import { AlwaysOffSampler } from '@opentelemetry/sdk-trace-base';
import { otel } from './index.js';
import { inMemory } from './traces.test-support.js';

type Memory = ReturnType<typeof inMemory>;

/** Two calls that share a slot. The first has a retry, a tool and usage; the second one fails. */
const makeCalls = ({ providers }: Memory): void => {
  const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 30, cacheWriteTokens: 0 };
  const model = retry(
    scriptedModel(
      (_, { scheduler }) =>
        timer(20, scheduler).pipe(
          mergeMap(() =>
            throwError(() => new MillraceError('server', 'Down.', { retryAfterMs: 100 })),
          ),
        ),
      (_, { scheduler }) =>
        timer(300, scheduler).pipe(
          mergeMap(() => [toolCall('wait'), { type: 'usage', usage } as const, finish()]),
        ),
      [text('Yes.')],
      (_, { scheduler }) =>
        timer(50, scheduler).pipe(
          mergeMap(() => throwError(() => new MillraceError('auth', 'No.'))),
        ),
    ),
  );
  const wait = tool({
    name: 'wait',
    description: 'Waits.',
    run: (_, { scheduler }) => timer(2_000, scheduler).pipe(map(() => 'Done.')),
  });
  const agent = createAgent({
    name: 'clerk',
    model,
    tools: [wait],
    use: [otel(providers), limitCalls(createSemaphore({ max: 1 }))],
  });
  marbles(({ scheduler, flush }) => {
    agent.call$('?', { scheduler }).subscribe();
    agent.call$('?', { scheduler }).subscribe({ error: () => undefined });
    flush();
  });
};

interface Point {
  readonly attributes: Attributes;
  readonly value: number | HistogramValue;
}

interface HistogramValue {
  readonly count: number;
  readonly sum?: number;
  readonly buckets: { readonly boundaries: number[]; readonly counts: number[] };
}

const pointsOf = async (memory: Memory) => {
  const metrics = await memory.metrics();
  const points = (name: string): readonly Point[] =>
    metrics
      .filter(({ descriptor }) => descriptor.name === name)
      .flatMap(({ dataPoints }) => dataPoints as readonly Point[]);
  const sums = (name: string) =>
    points(name).map(({ attributes, value }) =>
      typeof value === 'number'
        ? [attributes, value]
        : [attributes, value.count, Math.round((value.sum ?? 0) * 1e6) / 1e6],
    );
  return { metrics, points, sums };
};

const chat = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.provider.name': 'unknown',
  'gen_ai.request.model': 'scripted',
};
const clerk = { 'gen_ai.agent.name': 'clerk' };

describe('metrics', () => {
  it('have the values of virtual time', async () => {
    const memory = inMemory();
    makeCalls(memory);
    const { sums } = await pointsOf(memory);
    expect(sums('gen_ai.client.operation.duration')).toEqual([
      [{ ...chat, 'error.type': 'server' }, 1, 0.02],
      [chat, 2, 0.3],
      [{ ...chat, 'error.type': 'auth' }, 1, 0.05],
    ]);
    expect(sums('gen_ai.client.operation.time_to_first_chunk')).toEqual([[chat, 2, 0.3]]);
    expect(sums('gen_ai.client.token.usage')).toEqual([
      [{ ...chat, 'gen_ai.token.type': 'input' }, 1, 130],
      [{ ...chat, 'gen_ai.token.type': 'output' }, 1, 20],
    ]);
    expect(sums('gen_ai.execute_tool.duration')).toEqual([
      [{ ...clerk, 'gen_ai.tool.name': 'wait', 'gen_ai.tool.type': 'function' }, 1, 2],
    ]);
    expect(sums('gen_ai.invoke_agent.duration')).toEqual([
      [clerk, 1, 2.42],
      [{ ...clerk, 'error.type': 'auth' }, 1, 2.47],
    ]);
    expect(sums('millrace.queue.duration')).toEqual([
      [{ ...clerk, 'millrace.queue': 'calls' }, 1, 2.42],
    ]);
    expect(sums('millrace.errors')).toEqual([
      [{ 'gen_ai.operation.name': 'chat', 'error.type': 'server' }, 1],
      [{ 'gen_ai.operation.name': 'chat', 'error.type': 'auth' }, 1],
      [{ 'gen_ai.operation.name': 'invoke_agent', 'error.type': 'auth' }, 1],
    ]);
  });

  it('have units, and the buckets that the conventions advise', async () => {
    const memory = inMemory();
    makeCalls(memory);
    const { metrics, points } = await pointsOf(memory);
    expect(metrics.map(({ descriptor: { name, unit } }) => `${name} ${unit}`).sort()).toEqual([
      'gen_ai.client.operation.duration s',
      'gen_ai.client.operation.time_to_first_chunk s',
      'gen_ai.client.token.usage {token}',
      'gen_ai.execute_tool.duration s',
      'gen_ai.invoke_agent.duration s',
      'millrace.errors {error}',
      'millrace.queue.duration s',
    ]);
    const bucketsOf = (name: string) => {
      const [first] = points(name);
      return typeof first?.value === 'object' ? first.value.buckets : undefined;
    };
    expect(bucketsOf('gen_ai.execute_tool.duration')).toEqual({
      boundaries: [
        0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
      ],
      counts: [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0],
    });
    expect(bucketsOf('gen_ai.client.token.usage')).toEqual({
      boundaries: [
        1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
      ],
      counts: [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    });
    expect(bucketsOf('gen_ai.invoke_agent.duration')?.boundaries).toEqual([
      0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6,
    ]);
  });

  it('equal the durations of the spans', async () => {
    const memory = inMemory();
    makeCalls(memory);
    const { sums } = await pointsOf(memory);
    const spans = memory.spans().filter(({ name }) => name.startsWith('invoke_agent'));
    const seconds = spans.map(
      ({ duration: [whole, nanos] }) => Math.round(whole * 1e6 + nanos / 1e3) / 1e6,
    );
    expect(sums('gen_ai.invoke_agent.duration').map(([, , sum]) => sum)).toEqual(seconds);
  });

  it('count the wait of a call that leaves the queue', async () => {
    const memory = inMemory();
    marbles(({ scheduler, flush }) => {
      const agent = createAgent({
        name: 'clerk',
        model: scriptedModel(NEVER),
        use: [otel(memory.providers), limitCalls(createSemaphore({ max: 1 }))],
      });
      const calls = [1, 2].map(() => agent.call$('?', { scheduler }).subscribe());
      scheduler.schedule(() => calls.reverse().forEach((call) => call.unsubscribe()), 500);
      flush();
    });
    const { sums } = await pointsOf(memory);
    expect(sums('millrace.queue.duration')).toEqual([
      [{ ...clerk, 'millrace.queue': 'calls' }, 1, 0.5],
    ]);
  });

  it('count the wait of a request for a limit', async () => {
    const memory = inMemory();
    marbles(({ scheduler, flush, model }) => {
      const limited = limitConcurrency(1);
      const agent = createAgent({
        name: 'clerk',
        model: limited(model(['99ms (tf|)', '99ms (tf|)'])),
        use: [otel(memory.providers)],
      });
      [1, 2].forEach(() => agent.call$('?', { scheduler }).subscribe());
      flush();
    });
    const { sums } = await pointsOf(memory);
    expect(sums('millrace.queue.duration')).toEqual([
      [{ ...clerk, 'millrace.queue': 'concurrency' }, 1, 0.099],
    ]);
  });

  it('do not depend on sampling', async () => {
    const sampled = inMemory();
    makeCalls(sampled);
    const unsampled = inMemory({ sampler: new AlwaysOffSampler() });
    makeCalls(unsampled);
    expect(unsampled.spans()).toEqual([]);
    const [all, same] = [await pointsOf(sampled), await pointsOf(unsampled)];
    const names = all.metrics.map(({ descriptor }) => descriptor.name);
    expect(names.map(same.sums)).toEqual(names.map(all.sums));
  });
});
