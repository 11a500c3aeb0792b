import { afterEach, describe, expect, it } from '@jest/globals';
import { trace } from '@opentelemetry/api';
import { type AgentEvent, createAgent, type Layer, type ModelContext, tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { lastValueFrom, Observable } from 'rxjs';
import { otel } from './index.js';
import { inMemory } from './traces.test-support.js';

const observables: { subscribe: (...observer: never[]) => unknown } = Observable.prototype;

const look = tool({ name: 'look', description: 'Looks.', run: () => 'A mill.' });

/** The subscriptions of the second call of an agent, after some turns with a tool. */
const subscriptionsOf = async (turns: number, use: readonly (readonly Layer[])[]) => {
  const script = [
    ...Array.from({ length: turns }, (_, turn) => [toolCall('look', {}, `${turn}`)]),
    [text('Yes.')],
  ];
  const agent = createAgent({ model: scriptedModel(...script, ...script), tools: [look], use });
  await lastValueFrom(agent.call$('?'));
  const { subscribe } = observables;
  let count = 0;
  observables.subscribe = new Proxy(subscribe, {
    apply: (target, observable, observer): unknown => {
      count += 1;
      return Reflect.apply(target, observable, observer);
    },
  });
  try {
    await lastValueFrom(agent.call$('?'));
  } finally {
    observables.subscribe = subscribe;
  }
  return count;
};

describe('what it costs', () => {
  afterEach(() => trace.disable());

  it('is nothing without a provider: as many subscriptions as without the layers', async () => {
    for (const turns of [0, 1, 3]) {
      expect(await subscriptionsOf(turns, [otel()])).toBe(await subscriptionsOf(turns, []));
    }
  });

  it('without a provider, models get the context of the call itself', async () => {
    const given: ModelContext[] = [];
    const model = scriptedModel((_request, context) => {
      given.push(context);
      return [text('Yes.')];
    });
    await createAgent({ model, use: [otel()] }).call('?');
    expect(given).toHaveLength(1);
    expect(given[0]?.report.name).toBe('report');
  });

  it('begins with a provider that is registered after the agent was created', async () => {
    const memory = inMemory();
    const agent = createAgent({
      model: scriptedModel([text('Yes.')], [text('No.')]),
      use: [otel()],
    });
    await agent.call('?');
    trace.setGlobalTracerProvider(memory.providers.tracerProvider);
    await agent.call('?');
    expect(memory.spans().map(({ name }) => name)).toEqual(['chat scripted', 'invoke_agent agent']);
  });

  it('grows by a fixed number with each turn', async () => {
    const { providers } = inMemory();
    const [none, one, two, three] = await Promise.resolve([
      await subscriptionsOf(0, [otel(providers)]),
      await subscriptionsOf(1, [otel(providers)]),
      await subscriptionsOf(2, [otel(providers)]),
      await subscriptionsOf(3, [otel(providers)]),
    ]);
    expect(none).toBeLessThanOrEqual(92);
    expect((two ?? 0) - (one ?? 0)).toBeLessThanOrEqual(80);
    expect((three ?? 0) - (two ?? 0)).toBe((two ?? 0) - (one ?? 0));
  });

  it('does not make a call interruptible, which would cost more', async () => {
    const seen: boolean[] = [];
    const seeing: Layer = {
      ...otel()[0],
      name: 'seeing',
      record: ({ layers }) => {
        seen.push(layers.some(({ name }) => name === 'interrupt'));
        return (call$) => call$;
      },
    };
    await createAgent({ model: scriptedModel([text('Yes.')]), use: [seeing] }).call('?');
    expect(seen).toEqual([false]);
  });

  it('events do not change', async () => {
    const script = () => scriptedModel([toolCall('look')], [text('Yes.')]);
    const eventsOf = async (use: readonly (readonly Layer[])[]) => {
      const events: AgentEvent[] = [];
      const agent = createAgent({ model: script(), tools: [look], use });
      await lastValueFrom(
        new Observable((subscriber) =>
          agent.stream$('?', { callId: 'c' }).subscribe({
            next: (event) => events.push(event),
            error: (cause: unknown) => subscriber.error(cause),
            complete: () => subscriber.complete(),
          }),
        ),
        { defaultValue: undefined },
      );
      return events.map(({ type, seq, iteration }) => ({ type, seq, iteration }));
    };
    expect(await eventsOf([otel(inMemory().providers)])).toEqual(await eventsOf([]));
  });
});
