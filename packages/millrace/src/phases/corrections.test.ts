import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, map } from 'rxjs';
import {
  createAgent,
  inProcessMemory,
  interruptOn,
  type ModelChunk,
  type ModelRequest,
  textOf,
  tool,
} from '../index.js';
import { marbles, record, scriptedModel, text, thinking, toolCall } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

const clock = tool({ name: 'clock', description: 'Tells the time.', run: () => 'noon' });
const atOnce = { limits: { parseBackoffMs: 0 } } as const;

const unread: readonly ModelChunk[] = [
  thinking('Hm.'),
  { type: 'malformed', feedback: 'You wrote: Acton. Write Action.', written: 'Acton' },
];

const thought = (words: string): readonly ModelChunk[] => [
  thinking(words),
  { type: 'malformed', feedback: 'Go on.', isThought: true },
];

const temperatures = (requests: readonly ModelRequest[]): readonly unknown[] =>
  requests.map(({ temperature }) => temperature);

describe('text without a readable action', () => {
  it('P4: the model waits 0.8 s times the texts in a row before it is asked again', () => {
    marbles(({ expectObservable, scheduler }) => {
      const model = scriptedModel(unread, unread, [toolCall('clock')], unread, [text('noon')]);
      const agent = createAgent({ model, tools: [clock] });
      const answer$ = agent.call$('?', { scheduler }).pipe(map(textOf));
      expectObservable(answer$).toBe('3200ms (a|)', { a: 'noon' });
    });
  });

  it('P4, S1: an interrupt does not wait', () => {
    marbles(({ expectObservable, scheduler, cold }) => {
      const stop$ = cold('100ms i', { i: 'Enough.' });
      const answer$ = createAgent({ model: scriptedModel(unread) }).call$('?', {
        scheduler,
        use: [interruptOn(stop$)],
      });
      const told$ = answer$.pipe(map((reply) => `${reply.reason}: ${textOf(reply)}`));
      expectObservable(told$).toBe('100ms (a|)', { a: 'interrupted: Enough.' });
    });
  });

  it('P4: if the feedback quotes what was written, the message is not shown with it', async () => {
    const model = scriptedModel(unread, [text('noon')]);
    await createAgent({ model }).call('?', atOnce);
    expect(model.requests[1]?.messages.map(textOf)).toEqual([
      '?',
      'You wrote: Acton. Write Action.',
    ]);
  });

  it('P4: when retries are used up, the error holds what was written', async () => {
    const call = createAgent({ model: scriptedModel(unread, unread) }).call('?', {
      limits: { ...atOnce.limits, maxParseRetries: 1 },
    });
    await expect(call).rejects.toMatchObject({ code: 'invalidResponse', partial: 'Acton' });
  });

  it('I7: each repair is a reasoning call', async () => {
    const model = scriptedModel(unread, unread, [text('noon')]);
    const reply = await createAgent({ model }).call('?', {
      limits: { ...atOnce.limits, maxIterations: 2 },
    });
    expect(reply).toMatchObject({ reason: 'maxIterations', iterations: 2 });
  });

  it('P5: the temperature rises with each text, up to its limit, and is back after one that can be read', async () => {
    const model = scriptedModel(unread, unread, unread, [toolCall('clock')], [text('noon')]);
    await createAgent({ model, tools: [clock] }).call('?', {
      limits: { ...atOnce.limits, maxParseRetries: 3, temperatureRamp: { step: 0.25, max: 1 } },
      request: { temperature: 0.5 },
    });
    expect(temperatures(model.requests)).toEqual([0.5, 0.75, 1, 1, 0.5]);
  });

  it('P5: a ramp is off by default, has 0.2 and 1.5 as its defaults, and counts from 1 if no temperature is given', async () => {
    const off = scriptedModel(unread, [text('noon')]);
    await createAgent({ model: off }).call('?', atOnce);
    expect(temperatures(off.requests)).toEqual([undefined, undefined]);
    const on = scriptedModel(unread, unread, unread, unread, [text('noon')]);
    await createAgent({ model: on }).call('?', {
      limits: { ...atOnce.limits, maxParseRetries: 4, temperatureRamp: {} },
    });
    expect(temperatures(on.requests)).toEqual([undefined, 1.2, 1.4, 1.5, 1.5]);
  });

  it('P5: a ramp that ends below the temperature does not lower it', async () => {
    const model = scriptedModel(unread, [text('noon')]);
    await createAgent({ model }).call('?', {
      request: { temperature: 1.8 },
      limits: { ...atOnce.limits, temperatureRamp: { max: 1.5 } },
    });
    expect(temperatures(model.requests)).toEqual([1.8, 1.8]);
  });

  it('P5: an invalid option of the ramp is refused', async () => {
    const ramp = { limits: { temperatureRamp: { stp: 1 } } } as never;
    await expect(createAgent({ model: scriptedModel() }).call('?', ramp)).rejects.toThrow(
      "has no option 'stp'",
    );
  });
});

describe('a message that only thinks', () => {
  it('P7: is followed by another one, which sees all thoughts; nothing of it is stored', async () => {
    const model = scriptedModel(thought('One.'), thought('Two.'), [text('noon')]);
    const memory = inProcessMemory();
    const agent = createAgent({ model });
    const reply = await sessions(agent, { memory })
      .open('s')
      .call('?', { limits: { maxParseRetries: 0 } });
    expect(reply).toMatchObject({ reason: 'answer', iterations: 3 });
    const shown = model.requests[2]?.messages.map(({ role, content }) => [
      role,
      ...content.map((block) => ('text' in block ? block.text : block.type)),
    ]);
    expect(shown).toEqual([
      ['user', '?'],
      ['assistant', 'One.'],
      ['user', 'Go on.'],
      ['assistant', 'Two.'],
      ['user', 'Go on.'],
    ]);
    const stored = await lastValueFrom(memory('s').load$());
    expect(stored.map(textOf)).toEqual(['?', 'noon']);
  });

  it('P7, I7: thinking continues as long as there are iterations', async () => {
    const model = scriptedModel(thought('a'), thought('b'), thought('c'), [text('Closed.')]);
    const reply = await createAgent({ model }).call('?', { limits: { maxIterations: 3 } });
    expect(reply).toMatchObject({ reason: 'maxIterations', iterations: 3 });
  });
});

describe('a use of a tool that is not to be run', () => {
  it('P6: is answered with why, in its place, and does not count', async () => {
    let runs = 0;
    const count = tool({ name: 'count', description: 'Counts.', run: () => (runs += 1) });
    const refusal = 'Not executed: one action per step.';
    const model = scriptedModel(
      [
        toolCall('count', {}, 'a'),
        { type: 'toolCall', name: 'count', input: { n: 2 }, id: 'b', refusal },
      ],
      [text('Done.')],
    );
    const agent = createAgent({ model, tools: [count] });
    const events = await record(agent.stream$('?', { limits: { maxToolCalls: 1 } }));
    const results = events.flatMap((event) =>
      event.type === 'postActing'
        ? [[event.toolCall.id, textOf(event.result), event.result.isError]]
        : [],
    );
    expect([...results].sort()).toEqual([
      ['a', '1', false],
      ['b', refusal, true],
    ]);
    expect(runs).toBe(1);
  });
});
