import { describe, expect, it } from '@jest/globals';
import { concat, of } from 'rxjs';
import * as v from 'valibot';
import { z } from 'zod';
import {
  createAgent,
  type InputSchema,
  suspend,
  textOf,
  type Tool,
  tool,
  toolMethod,
  toolOutput,
  toolsOf,
} from '../index.js';
import { jsonSchema } from '../schema/index.js';
import { record, scriptedModel, text, toolCall } from '../testing/index.js';

const named = { name: 'forecast', description: 'Returns the forecast.' };
const output = z.object({ city: z.string(), degrees: z.number() });
const oslo = { city: 'Oslo', degrees: 3 };
const written = jsonSchema({
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'number' } },
  required: ['city', 'degrees'],
});

/** A value that the types would refuse. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
const anything = (value: unknown): any => value;

const resultOf = async (forecast: Tool) => {
  const model = scriptedModel([toolCall(forecast.name)], [text('done')]);
  const events = await record(createAgent({ model, tools: [forecast] }).stream$('?'));
  const [event] = events.filter((it) => it.type === 'postActing');
  if (event === undefined) throw new Error('The tool was not called.');
  const { result, error } = event;
  return { text: textOf(result), isError: result.isError, error };
};

const outcomeOf = async (forecast: Tool) => {
  const { text: said, isError } = await resultOf(forecast);
  return [isError, said];
};

describe('T1: a tool with a schema of its results', () => {
  it.each([
    ['a value', () => oslo],
    ['a Promise', async () => oslo],
    ['an Observable', () => of(oslo)],
    ['the last value of an Observable', () => concat(of(1), of(oslo))],
    [
      'a generator',
      function* () {
        yield '50 %';
        return oslo;
      },
    ],
    [
      'an async generator',
      async function* () {
        yield 50;
        yield oslo;
      },
    ],
  ])('validates %s', async (_, run) => {
    const json = JSON.stringify(oslo);
    for (const schema of [output, written]) {
      expect(await outcomeOf(tool({ ...named, output: schema, run: anything(run) }))).toEqual([
        false,
        json,
      ]);
    }
    const other = z.object({ town: z.string() });
    const [isError] = await outcomeOf(tool({ ...named, output: other, run: anything(run) }));
    expect(isError).toBe(true);
  });

  it('gives the model the value as the schema transforms it', async () => {
    const row = { ...oslo, passwordHash: 'secret' };
    const shown = { city: 'Oslo', degrees: 3 };
    for (const schema of [output, written]) {
      expect(await outcomeOf(tool({ ...named, output: schema, run: () => row }))).toEqual([
        false,
        JSON.stringify(shown),
      ]);
    }
    const defaults = z.object({
      at: z.date().transform((date) => date.getTime()),
      n: z.number().default(7),
    });
    expect(
      await outcomeOf(tool({ ...named, output: defaults, run: () => ({ at: new Date(5) }) })),
    ).toEqual([false, '{"at":5,"n":7}']);
  });

  it('may have a schema of any type, of any library, and one that waits', async () => {
    expect(await outcomeOf(tool({ ...named, output: z.string(), run: () => 'clear' }))).toEqual([
      false,
      'clear',
    ]);
    const strings = ['cl', 'ear'];
    expect(
      await outcomeOf(tool({ ...named, output: z.literal('clear'), run: () => of(...strings) })),
    ).toEqual([false, 'clear']);
    const slow = z.array(z.number().refine(async (n) => n > 0));
    expect(await outcomeOf(tool({ ...named, output: slow, run: () => [1, 2] }))).toEqual([
      false,
      '[1,2]',
    ]);
    expect((await outcomeOf(tool({ ...named, output: slow, run: () => [0] })))[0]).toBe(true);
    const plain = v.object({ n: v.number() });
    expect(await outcomeOf(tool({ ...named, output: plain, run: () => ({ n: 1 }) }))).toEqual([
      false,
      '{"n":1}',
    ]);
  });

  it('reads a JSON Schema as a description of the JSON: a date is a string', async () => {
    const at = jsonSchema({
      type: 'object',
      properties: { at: { type: 'string' } },
      required: ['at'],
    });
    const run = () => ({ at: new Date(0) });
    expect(await outcomeOf(tool({ ...named, output: at, run: anything(run) }))).toEqual([
      false,
      '{"at":"1970-01-01T00:00:00.000Z"}',
    ]);
    const nothing = () => undefined;
    expect(await outcomeOf(tool({ ...named, output: at, run: anything(nothing) }))).toEqual([
      true,
      'The result of forecast does not match its schema:\n- the result: must be object',
    ]);
  });

  it('names the problems of another value, and shows no value to the model', async () => {
    for (const schema of [output, written]) {
      const run = () => ({ degrees: 'secret', other: 'secret' });
      const {
        text: said,
        isError,
        error,
      } = await resultOf(tool({ ...named, output: schema, run: anything(run) }));
      expect(isError).toBe(true);
      expect(said).toMatch(/^The result of forecast does not match its schema:\n- /);
      expect(said).toContain('- city: ');
      expect(said).toContain('- degrees: ');
      expect(said).not.toContain('secret');
      // The program can read it.
      expect(error).toMatchObject({ code: 'tool' });
      expect(error?.message).toContain('received "secret"');
    }
  });

  it('runs again after an error that is transient, and not after an invalid result', async () => {
    let runs = 0;
    const retried = tool({
      ...named,
      retry: { attempts: 3, backoffMs: 0 },
      output,
      run: () => {
        runs += 1;
        return anything({});
      },
    });
    expect((await outcomeOf(retried))[0]).toBe(true);
    expect(runs).toBe(1);
  });

  it('does not validate an error, nor an output with content of its own', async () => {
    const other = toolOutput({ content: 'as I say', details: 1 });
    expect(await outcomeOf(tool({ ...named, output, run: () => other }))).toEqual([
      false,
      'as I say',
    ]);
    expect(await outcomeOf(tool({ ...named, output, run: () => new Error('no') }))).toEqual([
      true,
      'Failed: no',
    ]);
    const model = scriptedModel([toolCall('forecast')]);
    const waiting = tool({ ...named, output, run: () => suspend('?') });
    const { reason } = await createAgent({ model, tools: [waiting] }).call('?');
    expect(reason).toBe('suspended');
  });

  it('reports a schema that throws as an error of the tool', async () => {
    const broken = z.unknown().transform(() => {
      throw new Error('broken');
    });
    expect(await outcomeOf(tool({ ...named, output: broken, run: () => 1 }))).toEqual([
      true,
      'Failed: broken',
    ]);
  });

  it('reports progress as it comes', async () => {
    const slow = tool({ ...named, output, run: () => concat(of(1), of(oslo)) });
    const model = scriptedModel([toolCall('forecast')], [text('done')]);
    const progress = await record(createAgent({ model, tools: [slow] }).stream$('?'));
    expect(progress.flatMap((it) => (it.type === 'actingChunk' ? [it.value] : []))).toEqual([
      1,
      oslo,
    ]);
  });

  it('is a method, too', async () => {
    class Weather {
      @toolMethod({ ...named, output: written })
      forecast(): { city: string; degrees: number } {
        return anything({ city: 'Oslo' });
      }
    }
    const [forecast] = toolsOf(new Weather());
    expect(forecast?.outputSchema).toBe(written.jsonSchema);
    expect(forecast && (await outcomeOf(forecast))).toEqual([
      true,
      'The result of forecast does not match its schema:\n- degrees: is required, but missing',
    ]);
  });
});

describe('T5: the JSON Schema of results', () => {
  const schemaOf = (schema: InputSchema | z.ZodType) =>
    tool({ ...named, output: schema, run: anything(() => 1) }).outputSchema;

  it('is that of valid values, after the schema has transformed them', () => {
    expect(schemaOf(z.object({ n: z.string().transform(Number).pipe(z.number()) }))).toMatchObject({
      type: 'object',
      properties: { n: { type: 'number' } },
    });
    expect(schemaOf(written)).toBe(written.jsonSchema);
  });

  it('is absent if there is no such thing, or JSON cannot express it', () => {
    expect(tool({ ...named, run: () => 1 })).not.toHaveProperty('outputSchema');
    expect(schemaOf(z.object({ at: z.date() }))).toBeUndefined();
  });

  it('reports what it does not check', () => {
    const odd = jsonSchema(
      { type: 'object', properties: { a: { type: 'string', pattern: 'x' } } },
      {
        patterns: () => {
          throw new Error('no');
        },
      },
    );
    const { warnings } = tool({ ...named, output: odd, run: anything(() => 1) });
    expect(warnings).toEqual([
      `tool 'forecast': 'output': the pattern "x" is not supported: it is ignored.`,
    ]);
  });

  it('is an error if it is no schema', () => {
    expect(() => tool({ ...named, output: anything({ type: 'object' }), run: () => 1 })).toThrow(
      "tool 'forecast': 'output' must be a Standard Schema",
    );
    expect(() => tool({ ...named, output: anything(null), run: () => 1 })).toThrow("'output'");
  });
});

describe('what a tool returns that is like a promise', () => {
  const outcome = async (
    then: (resolve: (value: unknown) => void, reject: (cause: unknown) => void) => void,
  ) => {
    const odd = tool({ ...named, run: () => anything({ then }) });
    const model = scriptedModel([toolCall('forecast')], [text('Well.')]);
    const reply = await createAgent({ model, tools: [odd] }).call('?');
    return [reply.text, reply.toolCalls[0]?.isError, reply.toolCalls[0]?.output];
  };

  it('T9: settles once, as its first call says', async () => {
    const twice = await outcome((resolve, reject) => {
      resolve(of('first'));
      resolve('second');
      reject(new Error('late'));
    });
    expect(twice).toEqual(['Well.', false, 'first']);
    const broken = await outcome((resolve, reject) => {
      reject(new Error('no'));
      resolve('late');
    });
    expect(broken).toEqual(['Well.', true, expect.stringContaining('no')]);
  });

  it('T9: a tool may freeze its context', async () => {
    const inner = createAgent({ model: scriptedModel([text('In.')]) });
    const asks = tool({
      ...named,
      run: (_, context) => {
        Object.freeze(context);
        return inner.call('?', { parent: context }).then((reply) => reply.text);
      },
    });
    const model = scriptedModel([toolCall('forecast')], [text('Well.')]);
    const reply = await createAgent({ model, tools: [asks] }).call('?');
    expect(reply.toolCalls[0]).toMatchObject({ isError: false, output: 'In.' });
  });
});
