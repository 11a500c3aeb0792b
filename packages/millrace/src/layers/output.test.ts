import { describe, expect, it } from '@jest/globals';
import {
  asapScheduler,
  concatMap,
  filter,
  firstValueFrom,
  from,
  identity,
  map,
  observeOn,
  of,
  Subject,
  toArray,
} from 'rxjs';
import { z } from 'zod';
import {
  createAgent,
  type Interceptor,
  interruptOn,
  type JsonSchema,
  type Model,
  type ModelChunk,
  on,
  output,
  partialOutput$,
  textBlock,
  textOf,
  tool,
} from '../index.js';
import { isTooDeep } from '../values/json.js';
import { readOutput$ } from './output.js';
import { jsonSchema } from '../schema/index.js';
import { finish, marbles, record, scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from './sessions/index.js';

const place = {
  type: 'object',
  properties: { city: { type: 'string' }, people: { type: 'number' } },
  required: ['city'],
} as const satisfies JsonSchema;
const whereabouts = jsonSchema(place);

const withoutOutput = (model: Model): Model => ({ ...model, unsupported: ['outputSchema'] });
const input = (delta: string): ModelChunk => ({ type: 'toolCall', index: 0, json: delta });

describe('structured output', () => {
  it('R3: reply.output is what the model wrote, validated and frozen', async () => {
    const model = scriptedModel([text('{"city":"Oslo",'), text('"people":700000,"x":1}')]);
    const reply = await createAgent({ model }).call('Where?', { use: [output(whereabouts)] });
    expect(reply.output).toEqual({ city: 'Oslo', people: 700_000 });
    expect(Object.isFrozen(reply.output)).toBe(true);
    expect(model.requests[0]?.outputSchema).toBe(place);
  });

  it('R3: an agent may have it for all its calls, and a call its own', async () => {
    const model = scriptedModel([text('{"city":"Oslo"}')], [text('{"sum":4}')]);
    const agent = createAgent({ model, use: [output(whereabouts)] });
    const reply = await agent.call('Where?');
    expect(reply.output?.city).toBe('Oslo');
    const sum = z.object({ sum: z.number().transform((it) => it * 2) });
    expect(
      (
        await sessions(agent)
          .open('s')
          .call('?', { use: [output(sum)] })
      ).output?.sum,
    ).toBe(8);
  });

  it('R3: what does not fit goes back to the model twice, and then the call ends', async () => {
    const model = scriptedModel([text('Oslo')], [text('{"people":1}')], [text('{"city":5}')]);
    const failing = createAgent({ model }).call('Where?', { use: [output(whereabouts)] });
    await expect(failing).rejects.toMatchObject({
      code: 'invalidResponse',
      partial: '{"city":5}',
    });
    const feedback = model.requests.map(({ messages }) =>
      textOf(messages.at(-1) ?? { content: [] }),
    );
    expect(feedback[1]).toMatch(
      /JSON of the requested schema, with no text.*\n- it contains no JSON object$/,
    );
    expect(feedback[2]).toMatch(/- city: is required, but missing$/);
    model.verify();
  });

  it('R3, L7: a correction is a counted iteration, and its message is not stored', async () => {
    const model = scriptedModel([text('Oslo')], [text('{"city":"Oslo"}')]);
    const agent = createAgent({ model, use: [output(whereabouts)] });
    const session = sessions(agent).open('s');
    const events = await record(session.stream$('Where?', { callId: 'c' }));
    expect(events.at(-1)).toMatchObject({ reply: { iterations: 2, output: { city: 'Oslo' } } });
    expect(events.filter(({ type }) => type === 'messageDiscarded')).toHaveLength(1);
    const stored = await firstValueFrom(session.memory.load$());
    expect(stored.map(({ id }) => id)).toEqual(['c/input/0', 'c/2']);
  });

  it('R3: words and fences around the JSON are passed over', async () => {
    const said = [
      'Here you are:\n```json\n{"city": "Oslo"}\n```\nAnything else?',
      'First {"city": "Rome"}, no: {"city": "Oslo", "note": "a } in \\"quotes\\""}',
      '  {"city":"Oslo"}  ',
      'Example: {"city":"Rome"}. Answer: {"city":"Oslo",}',
      '{"city":"Oslo"} {note: it has one airport}',
    ];
    for (const answer of said) {
      const agent = createAgent({ model: scriptedModel([text(answer)]) });
      expect((await agent.call('?', { use: [output(whereabouts)] })).output).toEqual({
        city: 'Oslo',
      });
    }
  });

  it('R3: a model without it answers with a tool, whose arguments are the text', async () => {
    const script = scriptedModel(
      [toolCall('look', {}, 'a')],
      [
        text('Let me see.'),
        { type: 'toolCall', index: 0, id: 'b', name: 'final_answer' },
        input('{"city":'),
        input('"Oslo"}'),
      ],
    );
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'a fjord' });
    const agent = createAgent({
      model: withoutOutput(script),
      tools: [look],
      use: [output(whereabouts)],
    });
    const events = await record(agent.stream$('Where?', { callId: 'c' }));
    expect(events.at(-1)).toMatchObject({
      reply: {
        reason: 'answer',
        output: { city: 'Oslo' },
        content: [text('Let me see.\n\n{"city":"Oslo"}')],
        toolCalls: [{ name: 'look' }],
      },
    });
    expect(script.requests[0]).toMatchObject({
      toolChoice: 'required',
      tools: [{ name: 'look' }, { name: 'final_answer', inputSchema: place }],
    });
    expect(script.requests[0]).not.toHaveProperty('outputSchema');
    expect(events.some(({ type }) => type === 'warning')).toBe(false);
  });

  it('R3: the tool to answer with has a name of its own, and no tool choice if the model knows none', async () => {
    const script = scriptedModel([toolCall('final_answer_2', { city: 'Oslo' })]);
    const model: Model = { ...script, unsupported: ['outputSchema', 'toolChoice'] };
    const taken = tool({ name: 'final_answer', description: 'Is there.', run: () => '' });
    const agent = createAgent({ model, tools: [taken], use: [output(whereabouts)] });
    expect((await agent.call('?')).output).toEqual({ city: 'Oslo' });
    expect(script.requests[0]).not.toHaveProperty('toolChoice');
  });

  it('R3: a forced tool comes first', async () => {
    const script = scriptedModel([toolCall('look')], [toolCall('final_answer', { city: 'Oslo' })]);
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'a fjord' });
    const agent = createAgent({
      model: withoutOutput(script),
      tools: [look],
      use: [output(whereabouts)],
    });
    await agent.call('?', { request: { toolChoice: { name: 'look' } } });
    expect(script.requests[0]).toMatchObject({ toolChoice: { name: 'look' } });
    expect(script.requests[0]?.tools).toHaveLength(1);
    expect(script.requests[1]?.tools).toHaveLength(2);
  });

  it('R3, L3: the closing call must have it too', async () => {
    const look = tool({ name: 'look', description: 'Looks.', run: () => 'a fjord' });
    const answering = (last: ModelChunk) => {
      const script = scriptedModel([toolCall('look')], [last]);
      const agent = createAgent({
        model: withoutOutput(script),
        tools: [look],
        use: [output(whereabouts)],
      });
      return { script, call: agent.call('?', { limits: { maxIterations: 1 } }) };
    };
    const right = answering(toolCall('final_answer', { city: 'Oslo' }));
    expect(await right.call).toMatchObject({
      reason: 'maxIterations',
      output: { city: 'Oslo' },
    });
    expect(right.script.requests[1]).toMatchObject({ toolChoice: { name: 'final_answer' } });
    await expect(answering(text('Oslo.')).call).rejects.toMatchObject({
      code: 'maxIterations',
      partial: 'Oslo.',
    });
  });

  it('R3: a call that ends otherwise than by an answer has none', async () => {
    const model = scriptedModel([text('{"city":"Os'), finish('length')]);
    const reply = await createAgent({ model, use: [output(whereabouts)] }).call('?');
    expect(reply).toMatchObject({ reason: 'truncated' });
    expect(reply.output).toBeUndefined();
  });

  it('R3: a schema that cannot be used is refused immediately', () => {
    const model = scriptedModel();
    expect(() => jsonSchema({ type: 'string' } as JsonSchema)).toThrow(
      "jsonSchema(): the schema must have the type 'object'",
    );
    expect(() => createAgent({ model, use: [output('text' as never)] })).toThrow(
      "output(): 'schema' must be a Standard Schema, such as z.object({}), or a JSON Schema in jsonSchema(",
    );
    expect(() => createAgent({ model }).call$('?', { use: [output(z.string() as never)] })).toThrow(
      "output(): 'schema' must have the type 'object'",
    );
  });

  it('R3: is a layer, and no option of a call or agent', async () => {
    const option = { output: place } as object;
    const where = "has no option 'output'. Add output(schema) to 'use'.";
    const model = scriptedModel();
    await expect(createAgent({ model }).call('?', option)).rejects.toThrow(where);
    expect(() => createAgent({ model, ...option })).toThrow(where);
  });

  it('R3: is not asked of a sub-agent', async () => {
    const inner = createAgent({ name: 'inner', model: scriptedModel([text('In words.')]) });
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      run: (_input, parent) => inner.call$('?', { parent }).pipe(map(textOf)),
    });
    const model = scriptedModel([toolCall('ask')], [text('{"city":"Oslo"}')]);
    const agent = createAgent({ model, tools: [ask] }).with(output(whereabouts));
    const reply = await agent.call('?');
    expect(reply.toolCalls[0]?.output).toBe('In words.');
    expect(reply.output?.city).toBe('Oslo');
  });

  it('R3: braces in the words before the JSON do not hide it', async () => {
    const said = [
      'open with { like so. {"city":"Oslo"}',
      'a { and a " and a } and {"city":"Oslo"} then { again',
    ];
    for (const answer of said) {
      const agent = createAgent({ model: scriptedModel([text(answer)]) });
      expect((await agent.call('?', { use: [output(whereabouts)] })).output).toEqual({
        city: 'Oslo',
      });
    }
  });

  it.each([
    [
      'a bracket is missing after a number',
      '{"id":"INV-1","city":"Rome","lines":[{"city":"L1"},{"city":"L2"}],"people":7',
      /incomplete/,
    ],
    ['it is cut in a string', 'Here: {"place":{"city":"Oslo"},"city":"Ber', /incomplete/],
    ['it is a list', 'They are [{"city":"Oslo"},{"city":"Rome"}].', /must be object/],
    ['a later one is cut', '{"city":"Oslo"}. No, it is {"city":"Rome","people":', /incomplete/],
    ['it does not parse', '{"a":{"city":"Oslo"},"city":undefined}', /cannot be read/],
    ['it has a key twice', '{"city":"Oslo","city":"Rome"}', /"city" twice/],
  ])('R3, X11: nothing inside an object is taken for the answer where %s', async (_, said, why) => {
    const model = scriptedModel([text(said)], [text('{"city":"Bonn"}')]);
    const reply = await createAgent({ model }).call('Where?', { use: [output(whereabouts)] });
    expect(reply.output).toEqual({ city: 'Bonn' });
    expect(textOf(model.requests[1]?.messages.at(-1) ?? { content: [] })).toMatch(why);
  });

  it.each([
    ['a raw line break', '{"city":"Os\nlo","x":{"city":"Rome"}}', { city: 'Os\nlo' }],
    ['a trailing comma', 'So: {"city":"Oslo","x":[{"city":"Rome"},],}', { city: 'Oslo' }],
    ['a bracket missing at the end', '{"city":"Oslo","x":[{"city":"Rome"}]', { city: 'Oslo' }],
  ])('R3, X11: an object with %s is repaired as a whole', async (_, said, read) => {
    const agent = createAgent({ model: scriptedModel([text(said)]) });
    expect((await agent.call('?', { use: [output(whereabouts)] })).output).toEqual(read);
  });

  it('R3, I11: a reply that is stopped or edited at its end has no output that it does not say', async () => {
    const outputs = (interceptor: Interceptor) =>
      createAgent({
        model: scriptedModel([text('{"city":"Secret"}')]),
        use: [interceptor, output(whereabouts)],
      }).call('?');
    const saying = (said: string) =>
      on(
        'postCall',
        map((event) => ({ ...event, reply: { ...event.reply, content: [textBlock(said)] } })),
      );
    expect(
      (
        await outputs(
          on(
            'postCall',
            filter(() => false),
          ),
        )
      ).output,
    ).toBeUndefined();
    expect((await outputs(saying('{"city":"Redacted"}'))).output).toEqual({ city: 'Redacted' });
    expect((await outputs(saying('Redacted'))).output).toBeUndefined();
    expect((await outputs(on('postCall', identity))).output).toEqual({ city: 'Secret' });
  });

  it('R3, S1: an interrupt does not wait for a schema that never decides, and one that throws is reported', async () => {
    const schema = (decide: () => unknown) =>
      z.object({ city: z.string() }).refine(decide as () => Promise<boolean>);
    const asked$ = new Subject<string>();
    const model = scriptedModel([text('{"city":"Oslo"}')], [text('{"city":"Oslo"}')]);
    const agent = createAgent({ model });
    const never = schema(() => {
      queueMicrotask(() => asked$.next('Enough.'));
      return new Promise(() => undefined);
    });
    const interrupted = await agent.call('?', { use: [interruptOn(asked$), output(never)] });
    expect(interrupted).toMatchObject({ reason: 'interrupted' });
    const closing = createAgent({
      model: scriptedModel([toolCall('x')], [text('{"city":"Oslo"}')]),
    });
    const atLimit = { use: [output(never), interruptOn(asked$)], limits: { maxIterations: 1 } };
    expect(await closing.call('?', atLimit)).toMatchObject({ reason: 'interrupted' });
    const throwing = schema(() => {
      throw new Error('boom');
    });
    await expect(agent.call('?', { use: [output(throwing)] })).rejects.toThrow(
      "The schema of 'output' failed: boom",
    );
  });

  it('X6: ten thousand mistakes of a model are reported in a few lines', async () => {
    const list: JsonSchema = {
      type: 'object',
      properties: { list: { type: 'array', items: { type: 'string' } } },
      patternProperties: { '^x': {} },
      additionalProperties: false,
    };
    const said = `{"list":[${'1,'.repeat(10_000)}1],${Array.from({ length: 4000 }, (_, n) => `"k${n}":{}`).join()}}`;
    const verdict = await firstValueFrom(readOutput$(jsonSchema(list), said));
    const problems = verdict.valid ? [] : verdict.problems;
    expect(problems).toHaveLength(21);
    expect(problems.at(-1)).toMatch(/^and \d+ more$/);
    expect(problems.join('').length).toBeLessThan(5_000);
  });

  it('X6, X15: hostile JSON is no output', async () => {
    const validator = whereabouts;
    const verdict = (said: string) => firstValueFrom(readOutput$(validator, said));
    const deep = `{"city":${'['.repeat(5000)}${']'.repeat(5000)}}`;
    expect(await verdict(deep)).toEqual({
      valid: false,
      problems: ['The JSON is nested too deeply.'],
    });
    expect(await verdict('{"__proto__":{"polluted":1},"city":"Oslo"}')).toEqual({
      valid: true,
      value: { city: 'Oslo' },
      input: { city: 'Oslo' },
    });
    expect({}).not.toHaveProperty('polluted');
    expect(await verdict('{'.repeat(100_000))).toMatchObject({ valid: false });
  });

  it('X6: reports depth without recursion', () => {
    const nested = (levels: number): unknown =>
      Array.from({ length: levels }).reduce((inner) => [inner], 1);
    expect([100, 101, 100_000].map((levels) => isTooDeep(nested(levels)))).toEqual([
      false,
      true,
      true,
    ]);
    expect(isTooDeep('text')).toBe(false);
  });
});

describe('partialOutput$', () => {
  it('R3: shows the output as far as it is written, at intervals, the last one whole', () => {
    marbles(({ model, scheduler, expectObservable }) => {
      const values = Object.fromEntries(
        Array.from('{"city":"Oslo","n":12}', (letter, index) => [
          String.fromCharCode(97 + index),
          text(letter),
        ]),
      );
      const letters = Object.keys(values).join('');
      const agent = createAgent({
        model: model(`${letters}(F|)`, { ...values, F: finish() }),
      });
      const event$ = agent.stream$('?', { scheduler });
      expectObservable(partialOutput$(event$, { everyMs: 10, scheduler })).toBe(
        'a 9ms b 9ms c-(d|)',
        {
          a: {},
          b: { city: 'Os' },
          c: { city: 'Oslo' },
          d: { city: 'Oslo', n: 12 },
        },
      );
    });
  });

  it('R3: shows each of several concurrent calls, and the whole before its reply', async () => {
    const answer = (city: string) =>
      from([...Array.from(`{"city":"${city}"}`, (letter) => text(letter)), finish()]).pipe(
        concatMap((chunk) => of(chunk).pipe(observeOn(asapScheduler))),
      );
    const agent = createAgent({ model: scriptedModel(answer('Oslo'), answer('Rome')) });
    const seen: unknown[] = [];
    partialOutput$(agent.events$, { everyMs: 10_000 }).subscribe((it) => seen.push(it));
    await Promise.all([agent.call('a'), agent.call('b')]);
    expect(seen).toEqual([{}, {}, { city: 'Oslo' }, { city: 'Rome' }]);
  });

  it('R3: begins again with another message, and leaves sub-agents and thinking out', async () => {
    const model = scriptedModel([text('{"city":5}')], [text('{"city":"Oslo"}')]);
    const event$ = createAgent({ model, use: [output(whereabouts)] }).stream$('?');
    const seen = await firstValueFrom(partialOutput$(event$, { everyMs: 0 }).pipe(toArray()));
    expect(seen.at(-1)).toEqual({ city: 'Oslo' });
  });

  it('X15: shows nothing that a prototype would bring, and survives what is no JSON', async () => {
    const show = async (said: string): Promise<readonly unknown[]> => {
      const event$ = createAgent({ model: scriptedModel([text(said)]) }).stream$('?');
      return firstValueFrom(partialOutput$(event$).pipe(toArray()));
    };
    const [nested] = await show('{"list":[{"__proto__":{"polluted":1}}');
    expect(nested).toEqual({ list: [{}] });
    expect((nested as { list: { polluted?: unknown }[] }).list[0]?.polluted).toBeUndefined();
    const [hostile] = await show('{"__proto__":{"polluted":1},"city":"Os');
    expect(hostile).toEqual({ city: 'Os' });
    expect(hostile).not.toHaveProperty('polluted');
    expect(await show('no object')).toEqual([]);
    await expect(show('{"a":'.repeat(20_000))).resolves.toBeDefined();
    expect(await firstValueFrom(partialOutput$(from([])).pipe(toArray()))).toEqual([]);
  });
});
