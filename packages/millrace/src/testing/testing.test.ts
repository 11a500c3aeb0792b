import { describe, expect, it } from '@jest/globals';
import { from, lastValueFrom, of, toArray } from 'rxjs';
import { contextKey, createAgent, inProcessMemory, type Model, preset, tool } from '../index.js';
import type { AgentEvent } from '../events.js';
import { jsonSchema } from '../schema/index.js';
import {
  finish,
  lentContext,
  marbles,
  memoryContract,
  modelContract,
  record,
  type ScriptedAnswer,
  scriptedModel,
  text,
  toolContract,
  toolCall,
  verifyEvents,
} from './index.js';

const obliging: Model = { name: 'obliging', stream$: () => from([text('4'), finish()]) };

const adder = () =>
  tool({
    name: 'add',
    description: 'Adds numbers.',
    input: jsonSchema({
      type: 'object',
      properties: { a: { type: 'number' }, b: { type: 'number' } },
      required: ['a', 'b'],
      additionalProperties: false,
    }),
    run: ({ a, b }) => a + b,
  });

describe('the contracts hold for what is in the box', () => {
  for (const { name, run } of modelContract(() => obliging)) it(`a model ${name}`, run);
  for (const { name, run } of memoryContract(inProcessMemory)) it(`a memory ${name}`, run);
  const samples = { valid: [{ a: 1, b: 2 }], invalid: [{}, { a: '1', b: 2 }, null, []] };
  for (const { name, run } of toolContract(adder, samples)) it(`a tool ${name}`, run);

  const name = contextKey<string>('name');
  const greeter = () =>
    preset(
      tool({
        name: 'greet',
        description: 'Greets.',
        input: jsonSchema({
          type: 'object',
          properties: { whom: { type: 'string' } },
          required: ['whom'],
        }),
        run: ({ whom }, context) => `${context.get(name)} greets ${whom}.`,
      }),
      { whom: name },
    );
  const given = { valid: [{}], invalid: [], context: [name.of('Ada')] };
  for (const { name: rule, run } of toolContract(greeter, given)) {
    it(`T2: a tool with a context ${rule}`, run);
  }
});

describe('the contracts see what breaks them', () => {
  const failures = async (checks: ReturnType<typeof modelContract>) => {
    const failed: string[] = [];
    for (const { name, run } of checks) await run().catch(() => failed.push(name));
    return failed;
  };

  it('a model that never finishes, and one that asks for tools it was not given', async () => {
    const endless: Model = { name: 'm', stream$: () => of(text('4')) };
    const pushy: Model = { name: 'm', stream$: () => from([toolCall('rm'), finish()]) };
    expect(await failures(modelContract(() => endless))).toEqual([
      'ends every answer with a finish, followed only by usage and facts',
      'can be unsubscribed from after its first chunk, and asked again',
    ]);
    expect(await failures(modelContract(() => pushy))).toEqual(['calls only tools of the request']);
  });

  it('a memory that forgets, repeats and confuses', async () => {
    const shared = inProcessMemory()('one');
    expect(await failures(memoryContract(() => () => shared))).not.toEqual([]);
  });

  it('a tool that takes everything', async () => {
    const careless = () =>
      tool({ name: 'x', description: 'y', input: jsonSchema({ type: 'object' }), run: () => of() });
    const samples = { valid: [{}], invalid: [{ a: 1 }] };
    expect(await failures(toolContract(careless, samples))).toEqual([
      'refuses invalid inputs, and says what is wrong',
    ]);
  });
});

describe('a scripted model', () => {
  it('names the fix when a request finds no answer', async () => {
    const add = tool({ name: 'add', description: 'Adds.', run: () => '3' });
    const model = scriptedModel([toolCall('add')]);
    await expect(createAgent({ model, tools: [add] }).call('?')).rejects.toThrow(
      "The script has 1 answer, and this is request 2. Pass one more answer to scriptedModel(), such as [text('Done.')]: each tool call leads to another request.",
    );
  });

  it('errors on a request too many', async () => {
    const call = createAgent({ model: scriptedModel() }).call('?');
    await expect(call).rejects.toThrow(/0 answers, and this is request 1/);
  });

  it('says when answers were not asked for', () => {
    expect(() => scriptedModel([text('a')], [text('b')]).verify()).toThrow(/only 0 were asked for/);
    expect(() => scriptedModel().verify()).not.toThrow();
  });

  it('ends a list of chunks with a finish, if it has none', async () => {
    const answer = (chunks: ScriptedAnswer) =>
      lastValueFrom(scriptedModel(chunks).stream$({ messages: [] }, lentContext()).pipe(toArray()));
    expect(await answer([text('a')])).toEqual([text('a'), finish()]);
    expect(await answer([finish('length')])).toEqual([finish('length')]);
    expect(await answer(() => [text('b')])).toEqual([text('b'), finish()]);
  });
});

describe('marbles', () => {
  it('play a model, and log who listened to it', () => {
    marbles(({ model, expectObservable, expectSubscriptions }) => {
      const scripted = model(['-h-(tf|)', '(af|)'], { a: text('again') });
      const answer$ = scripted.stream$({ messages: [] }, lentContext());
      expectObservable(answer$).toBe('-h-(tf|)', {
        h: { type: 'thinking', text: 'h' },
        t: text('t'),
        f: finish(),
      });
      expectSubscriptions(scripted.subscriptions[0] ?? []).toBe('^--!');
    });
  });

  it('fail if they differ', () => {
    expect(() =>
      marbles(({ cold, expectObservable }) => expectObservable(cold('-a|')).toBe('a|')),
    ).toThrow();
  });
});

describe('verifyEvents', () => {
  const tools = [adder()];
  const script = () => scriptedModel([toolCall('add', { a: 1, b: 2 })], [text('3')]);
  const good = () => record(createAgent({ model: script(), tools }).stream$('?'));

  const verdict = (events: readonly AgentEvent[]) =>
    lastValueFrom(from(events).pipe(verifyEvents()), { defaultValue: undefined });

  it('passes the events of a good call', async () => {
    expect(await good()).toHaveLength(11 - 1);
  });

  it.each<[string, (events: readonly AgentEvent[]) => readonly AgentEvent[], RegExp]>([
    ['a repeated event', (events) => events.flatMap((it) => [it, it]), /seq 1 follows 1/],
    ['a call without a beginning', (events) => events.slice(1), /has not begun/],
    ['a call without an end', (events) => events.slice(0, -1), /without its last event/],
    ['no event at all', () => [], /without any event/],
    [
      'chunks without a request',
      (events) => without(events, 'preReasoning'),
      /no request is under way/,
    ],
    ['a tool that begins unasked', (events) => without(events, 'postReasoning'), /not asked for/],
    ['a tool that does not begin', (events) => without(events, 'preActing'), /is asked/],
    ['a tool that does not end', (events) => without(events, 'postActing'), /is only acting/],
    ['something behind the end', (events) => [...events, again(events)], /has ended/],
    [
      'an iteration that goes back',
      (events) => events.map((it) => (it.type === 'postCall' ? { ...it, iteration: 1 } : it)),
      /its iteration is 1/,
    ],
  ])('sees %s', async (_, spoil, message) => {
    await expect(verdict(spoil(await good()))).rejects.toThrow(message);
  });
});

const without = (
  events: readonly AgentEvent[],
  type: AgentEvent['type'],
): readonly AgentEvent[] => {
  const index = events.findIndex((event) => event.type === type);
  return [...events.slice(0, index), ...events.slice(index + 1)];
};

const again = (events: readonly AgentEvent[]): AgentEvent => {
  const last = events.at(-1);
  if (last === undefined) throw new Error('no events');
  return { ...last, seq: last.seq + 1 };
};
