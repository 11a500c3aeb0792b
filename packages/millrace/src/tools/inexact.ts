import { admitsString } from '../values/admits.js';
import { inexactIn } from '../values/exact-json.js';
import type { JsonSchema } from '../values/schema.js';

/** Integers of a model that JavaScript numbers cannot hold: the lines for the model, and warnings for the program. */
export interface Inexact {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** Finds them in a value that `exactJson` returned. The program is warned if its schema admits no string instead. */
export const inexactOf = (value: unknown, schema: JsonSchema, owner: string): Inexact => {
  const found = inexactIn(value).map((each) => ({
    ...each,
    where: each.path.join('.') || 'the whole',
    takesString: admitsString(schema, each.path),
  }));
  return {
    problems: found.map(({ where, value: integer, takesString }) =>
      takesString
        ? `${where}: ${integer} is too long for a number, which would be rounded. Pass it as a string: "${integer}"`
        : `${where}: ${integer} is too long for a number, which would be rounded. Use an integer from ${-most} to ${most}`,
    ),
    warnings: found
      .filter(({ takesString }) => !takesString)
      .map(
        ({ where, value: integer }) =>
          `${owner}: the model wrote ${integer} at '${where}', which a JavaScript number cannot hold. Let the schema accept a string there.`,
      ),
  };
};

const most = Number.MAX_SAFE_INTEGER;
