import { expectTypeOf } from 'expect-type';
import { of } from 'rxjs';
import * as v from 'valibot';
import { z } from 'zod';
import {
  createAgent,
  type Model,
  suspend,
  type Tool,
  tool,
  toolMethod,
  toolOutput,
} from '../index.js';
import { jsonSchema } from '../schema/index.js';

const named = { name: 'forecast', description: 'Returns the forecast.' } as const;
const input = z.object({ city: z.string() });
const output = z.object({
  sky: z.enum(['clear', 'cloudy']),
  degrees: z.coerce.number<string>(),
  hours: z.array(z.literal(1)).default([]),
});
declare const model: Model;

// What `run` returns is the input of the schema, with literals, in any form.
tool({ ...named, input, output, run: ({ city }) => ({ sky: 'clear', degrees: city, hours: [1] }) });
tool({ ...named, input, output, run: async () => ({ sky: 'clear', degrees: '1' }) });
tool({ ...named, output, run: () => of({ sky: 'clear', degrees: '1' }) });
tool({
  ...named,
  output,
  *run() {
    yield '50 %';
    return { sky: 'clear', degrees: '1' };
  },
});
tool({
  ...named,
  output,
  async *run() {
    yield '50 %';
    return { sky: 'clear' as const, degrees: '1' };
  },
});
tool({
  ...named,
  output,
  async *run() {
    yield { sky: 'clear', degrees: '1' };
  },
});
// An output or an error, which is not validated.
tool({ ...named, output, run: () => toolOutput({ content: 'clear', finalAnswer: true }) });
tool({ ...named, output, run: () => suspend('?') });
tool({ ...named, output, run: async () => new Error('no forecast') });
// A schema of any type, from any library.
tool({ ...named, output: z.array(z.string()), run: () => ['Oslo'] });
tool({ ...named, output: z.enum(['a', 'b']), run: () => 'a' });
tool({ ...named, output: v.object({ at: v.date() }), run: () => ({ at: new Date(0) }) });
const written = jsonSchema({
  type: 'object',
  properties: { degrees: { type: 'number' } },
  required: ['degrees'],
});
tool({ ...named, output: written, run: () => ({ degrees: 1 }) });

// @ts-expect-error another key
tool({ ...named, output, run: () => ({ sky: 'clear', celsius: 1 }) });
// @ts-expect-error another literal
tool({ ...named, input, output, run: async ({ city }) => ({ sky: 'red', degrees: city }) });
// @ts-expect-error a number is no string
tool({ ...named, output: written, run: () => ({ degrees: '1' }) });
// @ts-expect-error nothing is no result
tool({ ...named, output, run: () => undefined });
// @ts-expect-error a string is no list
tool({ ...named, output: z.array(z.string()), run: () => 'Oslo' });
tool({
  ...named,
  output,
  // @ts-expect-error the value that is returned is the result
  *run() {
    yield 1;
    return { sky: 'clear' };
  },
});
// @ts-expect-error it is no schema
tool({ ...named, output: { type: 'object' }, run: () => 1 });

// The type of a tool is that of its input, and without a schema, any value is a result.
const checked = tool({ ...named, input, output, run: () => ({ sky: 'clear', degrees: '1' }) });
const unchecked = tool({ ...named, input, run: ({ city }) => [city, 1, undefined] });
expectTypeOf(checked).toEqualTypeOf(unchecked);
const tools: readonly Tool[] = [checked, unchecked];
createAgent({ model, tools });

class Weather {
  @toolMethod({ description: 'Returns the degrees.', output: written })
  degrees(): { degrees: number } {
    return { degrees: 1 };
  }

  // @ts-expect-error it returns something else
  @toolMethod({ description: 'Returns the degrees.', output: written })
  wrong(): { degrees: string } {
    return { degrees: '1' };
  }
}
expectTypeOf<Weather['degrees']>().toBeFunction();
