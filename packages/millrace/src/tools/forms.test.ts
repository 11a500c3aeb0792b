import { describe, expect, it } from '@jest/globals';
import { createAgent, output, tool } from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { record, scriptedModel, text } from '../testing/index.js';

const played = async (name: string, json: string, others: readonly string[] = []) => {
  const named = (own: string) =>
    tool({
      name: own,
      description: 'Returns the weather.',
      input: jsonSchema({
        type: 'object',
        properties: { city: { type: 'string' } },
        required: ['city'],
      }),
      run: ({ city }) => `${own}: ${city}`,
    });
  const tools = ['weather', ...others].map(named);
  const model = scriptedModel([{ type: 'toolCall', name, json }], [text('ok')]);
  const events = await record(createAgent({ model, tools }).stream$('?'));
  return {
    results: events.flatMap((it) => (it.type === 'postActing' ? [it.result.content] : [])),
    names: events.flatMap((it) => (it.type === 'postActing' ? [it.toolCall.name] : [])),
    repaired: events.filter(({ type }) => type === 'repaired'),
    sentBack: model.requests[1]?.messages,
  };
};
const city = '{"city":"Oslo"}';
const oslo = [[{ type: 'text', text: 'weather: Oslo' }]];

describe('X11: forms of names and arguments that models and servers write', () => {
  it.each([
    'functions.weather',
    'functions.weather:0',
    'tools.weather',
    'default_api.weather',
    'weather<|channel|>commentary',
    'weather<|channel|>json<|message|>',
    '<|channel|>commentary to=functions.weather',
    'to=functions.weather<|constrain|>json',
    ' weather ',
    '`weather`',
    'weather()',
  ])('the name %j means weather', async (name) => {
    const { results, names, repaired, sentBack } = await played(name, city);
    expect(results).toEqual(oslo);
    expect(names).toEqual(['weather']);
    expect(repaired).toMatchObject([{ before: name, after: 'weather' }]);
    expect(JSON.stringify(sentBack)).toContain('"name":"weather"');
  });

  it.each(['functions.rain', 'weather2', 'my.weather', 'get_weather', 'functions.', '', 'WEATHER'])(
    'the name %j means no tool',
    async (name) => {
      const { results, repaired } = await played(name, city);
      expect(JSON.stringify(results)).toContain('No tool is named');
      expect(repaired).toEqual([]);
    },
  );

  it('a tool that has such a name is meant by it', async () => {
    const { names, repaired } = await played('functions.weather', city, ['functions.weather']);
    expect(names).toEqual(['functions.weather']);
    expect(repaired).toEqual([]);
  });

  it.each([
    ['in a string', JSON.stringify(city)],
    ['in a string in a string', JSON.stringify(JSON.stringify(city))],
    ['in a string, with a comma too many', JSON.stringify('{"city":"Oslo",}')],
    ['with a mark after them', `${city}<|call|>`],
    ['with several marks after them', `${city}<|end|>\n<|call|> `],
    ['with a closing tag', `${city}\n</tool_call>`],
    ['between marks', `<|message|>${city}<|call|>`],
    ['between tags', `<tool_call>\n${city}\n</tool_call>`],
    ['in a fence with a mark', `\`\`\`json\n${city}<|call|>\n\`\`\``],
    ['with a mark, and a bracket too many', `${city}}<|call|>`],
    ['twice', city + city],
    ['as growing snapshots', `{"city"{"city":"Os${city}`],
    ['as snapshots that begin with a bracket', `{{"city":${city}`],
  ])('arguments %s are read', async (_, json) => {
    const { results, repaired } = await played('weather', json);
    expect(results).toEqual(oslo);
    expect(repaired).toMatchObject([{ before: json, toolCall: { input: { city: 'Oslo' } } }]);
  });

  it.each([
    ['a string that is no object', JSON.stringify('Oslo')],
    ['a mark in the middle', '{"city":<|call|>"Oslo"}'],
    ['two objects between marks', `${city}<|call|>${city}`],
    ['a tag that is not closed', `${city}</tool_call`],
    ['words after a mark', `${city}<|call|> and so on`],
    ['two objects', `${city}{"city":"Rome"}`],
    ['two objects with the same beginning', `${city}{"city":"Oslo","more":1}`],
    ['four strings', [1, 2, 3, 4].reduce((it) => JSON.stringify(it), city)],
  ])('arguments are not guessed: %s', async (_, json) => {
    const { results } = await played('weather', json);
    expect(JSON.stringify(results)).toContain('are not a JSON object');
  });

  it.each(['', ' ', 'null', '[]', '""', '"{}"', '{}<|call|>'])(
    '%j means no arguments',
    async (json) => {
      const ran: unknown[] = [];
      const now = tool({
        name: 'now',
        description: 'Returns the time.',
        run: (it) => ran.push(it),
      });
      const model = scriptedModel([{ type: 'toolCall', name: 'now', json }], [text('ok')]);
      await createAgent({ model, tools: [now] }).call('?');
      expect(ran).toEqual([{}]);
    },
  );

  it('marks and tags within strings stay', async () => {
    const { results, repaired } = await played('weather', '{"city":"<|call|></tool_call>"}');
    expect(results).toEqual([[{ type: 'text', text: 'weather: <|call|></tool_call>' }]]);
    expect(repaired).toEqual([]);
  });

  it('the tool that answers with structured output is meant as well', async () => {
    const scripted = scriptedModel([
      { type: 'toolCall', name: 'functions.final_answer', json: city },
    ]);
    const model = { ...scripted, unsupported: ['outputSchema'] as const };
    const schema = jsonSchema({ type: 'object', properties: { city: { type: 'string' } } });
    const reply = await createAgent({ model, use: [output(schema)] }).call('?');
    expect(reply.output).toEqual({ city: 'Oslo' });
  });
});
