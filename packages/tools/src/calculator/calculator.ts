import { tool, type Tool, toolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { type Engine, loadEngine } from './engine.js';
import { evaluate } from './evaluate.js';
import { formatQuantity } from './format-quantity.js';
import { toNotation } from './notation.js';
import { functionNames } from './operations.js';

const maxLength = 500;

/**
 * Creates the tool `calculator`: arithmetic with percentages, functions, units and their conversion.
 *
 * Numbers are decimal, so 0.1 + 0.2 is 0.3, and integers of up to 40 digits are exact. Other results are rounded to 14
 * significant digits, or to 8 with a unit. An expression has up to 500 characters, only calls a fixed list of
 * functions, and cannot assign, loop or allocate. mathjs is loaded on first use.
 */
export const calculator = (): Tool => {
  let engine: Promise<Engine> | undefined;
  return tool({
    name: 'calculator',
    idempotent: true,
    description:
      'Computes an arithmetic expression exactly: + - * / ^, percentages, brackets, functions, comparisons, ' +
      'units of measure and their conversion. Use it for every calculation instead of working it out yourself. ' +
      'It does not support currencies.',
    input: jsonSchema({
      type: 'object',
      properties: {
        expression: {
          type: 'string',
          minLength: 1,
          maxLength: maxLength,
          description:
            'One arithmetic expression, with all numbers in it. Convert units with "to". Angles are radians ' +
            `unless written like sin(30 deg). mod(7, 3) gives a remainder. Functions: ${functionNames.join(', ')}. ` +
            'Constants: pi, e, tau, phi.',
          examples: [
            '17.5% * 2349',
            '5 miles to km',
            'sqrt(2) * pi',
            '(19.99 + 5) * 3',
            '2^10',
            '20 degC to degF',
            '1200 + 19%',
            '3/7 > 0.42',
          ],
        },
      },
      required: ['expression'],
      additionalProperties: false,
    }),
    run: async ({ expression }) => {
      engine ??= loadEngine();
      const loaded = await engine;
      const result = evaluate(loaded, toNotation(expression));
      const value = typeof result === 'boolean' ? String(result) : formatQuantity(loaded, result);
      return toolOutput({ content: value, details: { expression, value } });
    },
  });
};
