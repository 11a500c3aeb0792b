import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { createAgent, suspend, textOf, tool, toolOutput, toolResults } from '../index.js';
import { createCallStore, inProcessCalls, journal, suspendBelow } from '../journal/index.js';
import { sessions } from '../layers/sessions/index.js';
import { agentTool } from '../layers/teams/index.js';
import { jsonSchema } from '../schema/index.js';
import { record, scriptedModel, text, toolCall } from '../testing/index.js';
import type { OutputSchema } from '../values/schema.js';

/** What the model reads of a result that is brought for a tool that waits. */
const heard = async (
  output: OutputSchema | undefined,
  given: unknown,
  from: 'client' | 'program',
) => {
  const where = tool({ name: 'where', description: 'Asks.', output, run: () => suspend() });
  const model = scriptedModel([toolCall('where', {}, 'w')], [text('Done.')]);
  const session = sessions(createAgent({ model, tools: [where] })).open('s');
  await session.call('?');
  await record(session.stream$(toolResults({ w: given }, { from })));
  const last = model.requests.at(-1)?.messages.at(-1);
  const [result] = last?.role === 'tool' ? last.content : [];
  if (result === undefined) throw new Error('There is no result.');
  return { said: textOf(result), isError: result.isError };
};

const city = z.object({ city: z.string() });
const cityAsJson = jsonSchema({
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
});
const upper = z.string().transform((it) => it.toUpperCase());
const block = { type: 'text', text: '{"city":"Oslo"}' };
const picture = { type: 'image', source: { kind: 'url', url: 'https://example.com/a.png' } };
const throwing = z.string().refine(() => {
  throw new Error('No.');
});

describe('T13: a result that a client brings', () => {
  it.each<[what: string, output: OutputSchema, given: unknown, said: string]>([
    ['that fits', city, { city: 'Oslo' }, '{"city":"Oslo"}'],
    ['that fits, as text', city, '{"city":"Oslo"}', '{"city":"Oslo"}'],
    ['that fits, as a block', city, [block], '{"city":"Oslo"}'],
    ['that fits, by a JSON Schema', cityAsJson, { city: 'Oslo' }, '{"city":"Oslo"}'],
    ['without the key that is no one’s', city, { city: 'Oslo', key: 's3cret' }, '{"city":"Oslo"}'],
    ['as the schema transforms it', upper, 'oslo', 'OSLO'],
    ['that is a number', z.number(), 7, '7'],
    ['that is a string of digits', z.string(), '7', '7'],
  ])('is taken: %s', async (_what, output, given, said) => {
    expect(await heard(output, given, 'client')).toEqual({ said, isError: false });
  });

  it.each<[what: string, output: OutputSchema, given: unknown]>([
    ['of another type', city, { city: 's3cret7' }.city],
    ['without a field', city, { town: 's3cret' }],
    ['by a JSON Schema', cityAsJson, { city: 7 }],
    ['that is a picture', city, [picture]],
    ['that is nothing', city, undefined],
    ['that is a number', z.string().min(9), 7],
    ['at which the schema throws', throwing, 'x'],
  ])('is an error for the model if it does not fit: %s', async (_what, output, given) => {
    const { said, isError } = await heard(output, given, 'client');
    expect(isError).toBe(true);
    expect(said).toMatch(/^(?:The result of where does not match its schema|Failed: )/u);
    expect(said).not.toContain('s3cret');
  });

  it('is not checked if the tool has no schema, if it is an error, and if the program brings it', async () => {
    const failed = toolOutput({ content: 'No.', isError: true });
    expect(await heard(undefined, 'x', 'client')).toEqual({ said: 'x', isError: false });
    expect(await heard(city, failed, 'client')).toEqual({ said: 'No.', isError: true });
    expect(await heard(city, 'It was sent.', 'program')).toEqual({
      said: 'It was sent.',
      isError: false,
    });
  });

  it.each<[from: 'client' | 'program', given: unknown, said: RegExp]>([
    ['client', { city: 'Oslo', key: 's3cret' }, /^\{"city":"Oslo"\}$/u],
    ['client', { town: 's3cret' }, /^The result of where does not match its schema(?!.*s3cret)/u],
    ['program', 'It was sent.', /^It was sent\.$/u],
  ])('is checked for the tool of a sub-agent, too: the %s brings %j', async (from, given, said) => {
    const where = tool({ name: 'where', description: 'Asks.', output: city, run: () => suspend() });
    const below = scriptedModel([toolCall('where', {}, 'w')], [text('Done below.')]);
    const guide = createAgent({ name: 'guide', model: below, tools: [where] });
    const agent = createAgent({
      model: scriptedModel([toolCall('guide', { user_prompt: '?' })], [text('Done.')]),
      tools: [agentTool(guide, { description: 'Guides.' })],
      use: [journal(createCallStore(inProcessCalls())), suspendBelow],
    });
    const session = sessions(agent).open('s');
    const { suspensions } = await session.call('?');
    const id = suspensions?.[0]?.toolCall.id ?? '';
    const reply = await session.call(toolResults({ [id]: given }, { from }));
    expect(reply.text).toBe('Done.');
    const last = below.requests.at(-1)?.messages.at(-1);
    const [result] = last?.role === 'tool' ? last.content : [];
    expect(result && textOf(result)).toMatch(said);
  });
});
