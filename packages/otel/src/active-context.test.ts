import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { context, propagation, trace } from '@opentelemetry/api';
import { createAgent, fallback, type Model, MillraceError, retry, tool } from 'millrace';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { defer, first, from, mergeMap, tap, throwError } from 'rxjs';
import { otel } from './index.js';
import { inMemory, treeOf, useContextManager } from './traces.test-support.js';

beforeEach(useContextManager);
afterEach(() => context.disable());

type Memory = ReturnType<typeof inMemory>;

/** A client with an instrumentation: it makes a span for each request, some time after the subscription. */
const instrumented = (memory: Memory, name: string, ...answers: readonly boolean[]): Model => {
  const sent$ = (isFine: boolean) =>
    defer(async () => {
      await Promise.resolve();
      memory.tracer.startSpan(`POST ${name}`).end();
      return isFine;
    });
  const left = [...answers];
  return {
    name,
    stream$: () =>
      defer(() => sent$(left.shift() ?? true)).pipe(
        mergeMap((isFine) =>
          isFine
            ? from([text('Yes.'), finish()])
            : throwError(() => new MillraceError('server', 'Down.')),
        ),
      ),
  };
};

/** Names, indented by their parents. */
const names = (memory: Memory): readonly string[] =>
  treeOf(memory.spans()).flatMap((line) => (/^( *\w[\w ]*?) [\d.]+-/u.exec(line) ?? []).slice(1));

describe('the active context', () => {
  it('is that of the tool while it runs, also after it waited', async () => {
    const memory = inMemory();
    const work = tool({
      name: 'work',
      description: 'Works.',
      run: async () => {
        memory.tracer.startSpan('first').end();
        await Promise.resolve();
        memory.tracer.startSpan('second').end();
        return 'Done.';
      },
    });
    const agent = createAgent({
      model: scriptedModel([toolCall('work')], [text('Yes.')]),
      tools: [work],
      use: [otel(memory.providers)],
    });
    await agent.call('?');
    expect(names(memory)).toEqual([
      'invoke_agent agent',
      '  chat scripted',
      '  execute_tool work',
      '    first',
      '    second',
      '  chat scripted',
    ]);
  });

  it('is that of the attempt in which a request is sent', async () => {
    const memory = inMemory();
    const model = retry(instrumented(memory, 'a', false, false, true), { minMs: 1 });
    await createAgent({ model, use: [otel(memory.providers)] }).call('?');
    expect(names(memory)).toEqual([
      'invoke_agent agent',
      '  chat a',
      '    POST a',
      '  chat a',
      '    POST a',
      '  chat a',
      '    POST a',
    ]);
  });

  it('is that of the other model after a fallback', async () => {
    const memory = inMemory();
    const model = fallback(instrumented(memory, 'a', false), instrumented(memory, 'b'));
    await createAgent({ model, use: [otel(memory.providers)] }).call('?');
    expect(names(memory)).toEqual([
      'invoke_agent agent',
      '  chat a',
      '    POST a',
      '  chat b',
      '    POST b',
    ]);
  });

  it('makes the call of a sub-agent a child of the span that its tool made', async () => {
    const memory = inMemory();
    const inner = createAgent({ name: 'inner', model: scriptedModel([text('Yes.')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, parent) =>
        memory.tracer.startActiveSpan('look up', async (span) => {
          await Promise.resolve();
          const { text: answer } = await inner.call('?', { parent });
          span.end();
          return answer;
        }),
    });
    const agent = createAgent({
      model: scriptedModel([toolCall('ask')], [text('Yes.')]),
      tools: [ask],
      use: [otel(memory.providers)],
    });
    await agent.call('?');
    expect(names(memory)).toEqual([
      'invoke_agent agent',
      '  chat scripted',
      '  execute_tool ask',
      '    look up',
      '      invoke_agent inner',
      '        chat scripted',
      '  chat scripted',
    ]);
  });

  it('of the subscriber is the parent of a call, with its baggage, and active again in its values', async () => {
    const memory = inMemory();
    const seen: unknown[] = [];
    const activeName = () => {
      const id = trace.getActiveSpan()?.spanContext().spanId;
      return id === request.spanContext().spanId ? 'request' : id;
    };
    const look = tool({
      name: 'look',
      description: 'Looks.',
      run: async () => {
        await Promise.resolve();
        return propagation.getActiveBaggage()?.getEntry('tenant')?.value ?? '';
      },
    });
    const agent = createAgent({
      model: scriptedModel([toolCall('look')], [text('Yes.')]),
      tools: [look],
      use: [otel(memory.providers)],
    });
    const request = memory.tracer.startSpan('request');
    const baggage = propagation.createBaggage({ tenant: { value: 'acme' } });
    const outer = propagation.setBaggage(trace.setSpan(context.active(), request), baggage);
    await context.with(
      outer,
      () =>
        new Promise<void>((resolve, reject) => {
          agent
            .stream$('?')
            .pipe(
              tap((event) => {
                // The result of a tool is reported while its step runs.
                if (event.type === 'postActing') seen.push(event.result.content);
                else seen.push(activeName());
              }),
            )
            .subscribe({ complete: resolve, error: reject });
        }),
    );
    request.end();
    expect(names(memory)).toEqual([
      'request',
      '  invoke_agent agent',
      '    chat scripted',
      '    execute_tool look',
      '    chat scripted',
    ]);
    expect(new Set(seen.filter((it) => typeof it === 'string'))).toEqual(new Set(['request']));
    expect(seen).toContainEqual([{ type: 'text', text: 'acme' }]);
  });

  it('ends a model that emits while it is subscribed to, as soon as the caller has enough', () => {
    const memory = inMemory();
    let pulled = 0;
    const words = function* () {
      for (; pulled < 1_000; pulled += 1) yield text('More. ');
    };
    const model: Model = { name: 'eager', stream$: () => from(words()) };
    createAgent({ model, use: [otel(memory.providers)] })
      .stream$('?')
      .pipe(first(({ type }) => type === 'reasoningChunk'))
      .subscribe();
    expect(pulled).toBe(0);
    expect(names(memory)).toEqual(['invoke_agent agent', '  chat eager']);
  });

  it('is not needed: an option gives the parent, and tools their calls', async () => {
    context.disable();
    const memory = inMemory();
    const inner = createAgent({ name: 'inner', model: scriptedModel([text('Yes.')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_, parent) => inner.call('?', { parent }).then(() => 'Yes.'),
    });
    const request = memory.tracer.startSpan('request');
    const agent = createAgent({
      model: scriptedModel([toolCall('ask')], [text('Yes.')]),
      tools: [ask],
      use: [
        otel({
          ...memory.providers,
          parent: ({ callId }) =>
            callId === 'c' ? trace.setSpan(context.active(), request) : undefined,
        }),
      ],
    });
    await agent.call('?', { callId: 'c' });
    request.end();
    expect(names(memory)).toEqual([
      'request',
      '  invoke_agent agent',
      '    chat scripted',
      '    execute_tool ask',
      '      invoke_agent inner',
      '        chat scripted',
      '    chat scripted',
    ]);
  });
});
