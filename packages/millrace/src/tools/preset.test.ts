import { describe, expect, it } from '@jest/globals';
import { contextKey, createAgent, preset, type Tool, tool, toolGroup } from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { scriptedModel, text, toolCall } from '../testing/index.js';
import { sessions } from '../layers/sessions/index.js';

const user = contextKey<string>('user');
const db = contextKey<{ readonly rows: Map<string, string> }>('db');

const weather = tool({
  name: 'weather',
  description: 'Tells the weather.',
  input: jsonSchema({
    type: 'object',
    properties: {
      city: { type: 'string' },
      unit: { enum: ['C', 'F'] },
      user: { type: 'string', minLength: 3 },
    },
    required: ['city', 'unit'],
  }),
  run: (input) => input,
});

/** What the tool said to what the model gave, and what the model had been shown. */
const use = async (
  used: Tool,
  input: Record<string, unknown>,
  context = [user.of('ada')],
): Promise<{ readonly output: string | undefined; readonly shown: unknown }> => {
  const model = scriptedModel([toolCall(used.name, input)], [text('done')]);
  const reply = await createAgent({ model, tools: [used] }).call('?', { context });
  const shown = model.requests[0]?.tools?.[0]?.inputSchema;
  return { output: reply.toolCalls[0]?.output, shown };
};

describe('T2: parameters that are set', () => {
  it('I12: are neither shown to the model nor overridden by it', async () => {
    const { output, shown } = await use(preset(weather, { unit: 'C' }), {
      city: 'Oslo',
      unit: 'F',
    });
    expect(output).toBe('{"city":"Oslo","unit":"C"}');
    expect(shown).toEqual({
      type: 'object',
      properties: { city: { type: 'string' }, user: { type: 'string', minLength: 3 } },
      required: ['city'],
    });
  });

  it('may be the default for what the model may say', async () => {
    const celsius = preset(weather, { unit: 'C' }, { overridable: true });
    expect((await use(celsius, { city: 'Oslo', unit: 'F' })).output).toContain('"unit":"F"');
    const { output, shown } = await use(celsius, { city: 'Oslo' });
    expect(output).toContain('"unit":"C"');
    expect(shown).toMatchObject({ properties: { unit: {} }, required: ['city'] });
  });

  it('I12: may come from the context, for any input of the model', async () => {
    const own = preset(weather, { unit: 'C', user });
    const { output, shown } = await use(own, { city: 'Oslo', user: 'root' });
    expect(output).toBe('{"city":"Oslo","unit":"C","user":"ada"}');
    expect(JSON.stringify(shown)).not.toContain('user');
  });

  it('I13: are validated, and their problems are not reported to the model', async () => {
    const own = preset(weather, { unit: 'C', user });
    const { output } = await use(own, { city: 5 }, [user.of('s3')]);
    expect(output).toBe(
      'The arguments for weather are invalid:\n- city: must be string (received 5)\n- user: the value that the program sets is not valid',
    );
  });

  it('of an outer preset take precedence over those of an inner one', async () => {
    const twice = preset(preset(weather, { unit: 'C' }, { overridable: true }), { unit: 'F' });
    expect((await use(twice, { city: 'Oslo' })).output).toContain('"unit":"F"');
  });

  it('stay as they are: a tool gets the very object that it was given', async () => {
    const rows = new Map([['a', 'b']]);
    const pool = { rows };
    const query = tool({
      name: 'query',
      description: 'Asks a database.',
      input: jsonSchema({
        type: 'object',
        properties: { db: {}, key: { type: 'string' } },
        required: ['db'],
      }),
      run: (input) => (input.db === pool ? rows.get(String(input.key)) : 'another'),
    });
    const model = scriptedModel([toolCall('query', { key: 'a', db: 'mine' })], [text('done')]);
    const agent = createAgent({ model, tools: [preset(query, { db })], context: [db.of(pool)] });
    expect((await agent.call('?')).toolCalls[0]?.output).toBe('b');
  });

  it('must be parameters that the tool has', () => {
    expect(() => preset(weather as Tool, { town: 'Oslo' })).toThrow(
      "preset() of the tool 'weather' has no parameter 'town'. Its parameters are: city, unit, user.",
    );
    const hidden = preset(weather, { unit: 'C' });
    expect(() => preset(hidden, { unit: 'F' })).toThrow(/no parameter 'unit'/);
  });
});

/** Everything that a schema can say of `city`, beside the preset `tenant`, and whether `{ city: 'Oslo' }` fits with it. */
const speaking: readonly (readonly [string, object])[] = [
  ['required in allOf', { allOf: [{ required: ['tenant', 'city'] }] }],
  ['required in anyOf', { anyOf: [{ required: ['tenant', 'zip'] }, { required: ['tenant'] }] }],
  [
    'oneOf, told apart by it alone',
    {
      oneOf: [
        { properties: { tenant: { const: 'acme' } }, required: ['tenant', 'city'] },
        { properties: { tenant: { const: 'umbrella' } }, required: ['tenant', 'city'] },
      ],
    },
  ],
  [
    'oneOf beside anyOf',
    {
      anyOf: [{ required: ['city'] }, { required: ['zip'] }],
      oneOf: [{ required: ['tenant', 'city'] }, { required: ['zip'] }],
    },
  ],
  ['not', { not: { required: ['tenant', 'zip'] } }],
  ['not, of its value', { not: { properties: { tenant: { const: 'umbrella' } } } }],
  [
    'if',
    {
      if: { properties: { tenant: { const: 'umbrella' } } },
      then: { required: ['zip'] },
      else: { required: ['city'] },
    },
  ],
  [
    'then and else',
    {
      if: { required: ['zip'] },
      then: { required: ['tenant', 'zip'] },
      else: { required: ['tenant'] },
    },
  ],
  ['dependentRequired', { dependentRequired: { city: ['tenant'], tenant: ['city'] } }],
  [
    'dependentSchemas',
    { dependentSchemas: { city: { required: ['tenant'] }, tenant: { required: ['city'] } } },
  ],
  ['dependencies', { dependencies: { city: ['tenant'], tenant: { required: ['city'] } } }],
  ['examples', { examples: [{ city: 'Oslo', tenant: 'acme' }] }],
  ['default', { default: { city: 'Oslo', tenant: 'acme' } }],
  ['const', { const: { city: 'Oslo', tenant: 'acme' } }],
  [
    'enum',
    {
      enum: [
        { city: 'Oslo', tenant: 'acme' },
        { city: 'Rome', tenant: 'umbrella' },
      ],
    },
  ],
  ['propertyNames', { propertyNames: { enum: ['city', 'zip', 'tenant'] } }],
  ['a pattern of propertyNames', { propertyNames: { pattern: '^(city|zip|tenant)$' } }],
  [
    'patternProperties',
    { patternProperties: { '^(city|tenant)$': { minLength: 1 } }, additionalProperties: false },
  ],
  ['minProperties', { minProperties: 2 }],
  ['all at once', { allOf: [{ anyOf: [{ not: { required: ['tenant', 'zip'] } }] }] }],
];

describe.each(speaking)('I12: a preset that the schema speaks of: %s', (_what, more) => {
  const input = {
    type: 'object',
    properties: {
      city: { type: 'string' },
      zip: { type: 'string' },
      tenant: { type: 'string', enum: ['acme', 'umbrella'] },
    },
    required: ['tenant'],
    ...more,
  };
  const lookup = tool({
    name: 'lookup',
    description: 'Looks up.',
    input: jsonSchema(input),
    run: (given) => given,
  });
  const outputOf = (used: Tool) => use(used, { city: 'Oslo' }).then(({ output = '' }) => output);
  const fits = async (inputSchema: object, given: Record<string, unknown>) => {
    const shown = { type: 'object', ...inputSchema };
    const checked = tool({
      name: 'checked',
      description: 'Checks.',
      input: jsonSchema(shown),
      run: () => 'fits',
    });
    return (await use(checked, given)).output;
  };

  it('names neither it nor its values, takes what fits with it, and is held to as a whole', async () => {
    const own = preset(lookup, { tenant: 'acme' });
    expect(JSON.stringify(own.inputSchema)).not.toMatch(/tenant|acme|umbrella/);
    expect(await fits(own.inputSchema, { city: 'Oslo' })).toBe('fits');
    expect(JSON.parse(await outputOf(own))).toEqual({ city: 'Oslo', tenant: 'acme' });
  });

  it('need not be given, but may be, if the model may override', async () => {
    const own = preset(lookup, { tenant: 'acme' }, { overridable: true });
    expect(own.inputSchema).toMatchObject({ properties: { tenant: {} } });
    expect(await fits(own.inputSchema, { city: 'Oslo' })).toBe('fits');
    expect(await fits(own.inputSchema, { city: 'Oslo', tenant: 'acme' })).toBe('fits');
  });
});

describe('I12: what is left of a schema without a preset', () => {
  const input = {
    type: 'object',
    properties: { a: {}, b: {}, user: {}, inner: { type: 'object', required: ['user'] } },
    anyOf: [{ required: ['a', 'user'] }, { required: ['b'], properties: { user: { const: 1 } } }],
    dependentRequired: { a: ['b', 'user'], user: ['a'] },
    not: { required: ['a', 'inner'] },
    if: { required: ['b'] },
    then: { required: ['user', 'inner'] },
    enum: [
      { a: 1, user: 1 },
      { a: 1, user: 2 },
    ],
  };

  it('is what it says of the other parameters, and all of what it says of objects within', () => {
    const any = tool({ name: 'any', description: 'Any.', input: jsonSchema(input), run: () => 1 });
    expect(preset(any, { user: 1 }).inputSchema).toEqual({
      type: 'object',
      properties: { a: {}, b: {}, inner: { type: 'object', required: ['user'] } },
      anyOf: [{ required: ['a'] }, { required: ['b'] }],
      dependentRequired: { a: ['b'] },
      not: { required: ['a', 'inner'] },
      if: { required: ['b'] },
      then: { required: ['inner'] },
      enum: [{ a: 1 }],
    });
  });
});

describe('T2: the context of a call', () => {
  const asks = tool({
    name: 'asks',
    description: 'Says who asks.',
    run: (_input, context) => context.get(user),
  });
  const model = () => scriptedModel([toolCall('asks')], [text('done')]);
  const outputOf = async (reply: Promise<{ toolCalls: readonly { output: string }[] }>) =>
    (await reply).toolCalls[0]?.output;

  it('is what the nearest gives: the call, the session, the agent', async () => {
    const agent = createAgent({
      model: model(),
      tools: [asks],
      context: [user.of('of the agent')],
    });
    expect(await outputOf(agent.call('?'))).toBe('of the agent');
    const other = createAgent({
      model: model(),
      tools: [asks],
      context: [user.of('of the agent')],
    });
    const session = sessions(other).open('s', { context: [user.of('of the session')] });
    expect(await outputOf(session.call('?', { context: [user.of('of the call')] }))).toBe(
      'of the call',
    );
    const third = createAgent({
      model: model(),
      tools: [asks],
      context: [user.of('of the agent')],
    });
    const own = sessions(third).open('s', { context: [user.of('of the session')] });
    expect(await outputOf(own.call('?'))).toBe('of the session');
  });

  it('goes down to the agents that a tool calls, which may give something else', async () => {
    const below = (context = [user.of('of the parent')].slice(1)) =>
      createAgent({ name: 'below', model: model(), tools: [asks], context });
    const outputs = [below(), below([user.of('its own')])].map(async (sub) => {
      const delegate = tool({
        name: 'delegate',
        description: 'Asks another agent.',
        run: async (_input, parent) => outputOf(sub.call('?', { parent })),
      });
      const parent = createAgent({
        model: scriptedModel([toolCall('delegate')], [text('done')]),
        tools: [delegate],
        context: [user.of('of the parent')],
      });
      return outputOf(parent.call('?'));
    });
    expect(await Promise.all(outputs)).toEqual(['of the parent', 'its own']);
  });

  it('is seen by this call alone', async () => {
    const seen: unknown[] = [];
    const waits = tool({
      name: 'asks',
      description: 'Says who asks, later.',
      run: async (_input, context) => {
        await Promise.resolve();
        seen.push(context.get(user));
      },
    });
    const agent = () => createAgent({ model: model(), tools: [waits] });
    await Promise.all(
      ['ada', 'bob'].map((name) => agent().call('?', { context: [user.of(name)] })),
    );
    expect(seen.toSorted()).toEqual(['ada', 'bob']);
  });

  it('I23, I12: that lacks a key fails the call, which says how to give it', async () => {
    const own = model();
    await expect(createAgent({ model: own, tools: [asks] }).call('?')).rejects.toMatchObject({
      code: 'config',
      message:
        "The tool 'asks': The context key 'user' has no value. Pass one to the agent or the call: { context: [key.of(value)] }.",
    });
    expect(own.requests).toHaveLength(1);
  });

  it('I23: is missed when the call starts if its tool requires it, or has it as a preset', async () => {
    const input = jsonSchema({ type: 'object', properties: { name: { type: 'string' } } });
    const asking = { name: 'asks', description: 'Says who asks.', input } as const;
    const takes = tool({ ...asking, run: ({ name }) => name });
    const requiring = tool({ ...asking, requires: [user], run: (_, { get }) => get(user) });
    const own = model();
    const wrapped = preset(requiring, { name: 'bob' });
    for (const each of [requiring, wrapped, preset(takes, { name: user })]) {
      const group = toolGroup({ name: 'g', description: 'A group.', tools: [each] });
      for (const tools of [[each], [group]]) {
        await expect(createAgent({ model: own, tools }).call('?')).rejects.toMatchObject({
          code: 'config',
          message: expect.stringContaining("The tool 'asks': The context key 'user' has no value."),
        });
      }
    }
    expect(own.requests).toHaveLength(0);
    const call = createAgent({ model: model(), tools: [requiring] }).call('?', {
      context: [user.of('ada')],
    });
    expect((await call).toolCalls[0]?.output).toBe('ada');
    expect(() => tool({ ...asking, requires: ['user' as never], run: () => 1 })).toThrow(
      /'requires' must be/,
    );
  });

  it('is not found by another key of the same name', async () => {
    const context = [contextKey<string>('user').of('ada')];
    await expect(
      createAgent({ model: model(), tools: [asks] }).call('?', { context }),
    ).rejects.toMatchObject({ code: 'config' });
  });

  it('T2: takes data for data, also if it looks like a key', async () => {
    const range = { name: 'range', from: 1, of: 2 };
    const says = tool({
      name: 'asks',
      description: 'Says its range.',
      input: jsonSchema({ type: 'object', properties: { range: { type: 'object' } } }),
      run: (input) => input,
    });
    const own = preset(says, { range });
    const output = await outputOf(createAgent({ model: model(), tools: [own] }).call('?'));
    expect(output).toBe(JSON.stringify({ range }));
    expect(Object.isFrozen(range)).toBe(false);
  });

  it.each([[['ada']], ['ada'], [[undefined]]])('refuses %j', (context) => {
    expect(() => createAgent({ model: model(), context: context as never })).toThrow(
      /'context' must be a list of values under their keys/,
    );
  });
});
