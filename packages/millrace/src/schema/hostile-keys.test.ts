import { describe, expect, it } from '@jest/globals';
import { verdictOn } from './validate.test-support.js';

const drafts = [
  'https://json-schema.org/draft/2020-12/schema',
  'http://json-schema.org/draft-07/schema#',
];

describe.each(drafts)('X15: keys that every object inherits, in %s', ($schema) => {
  it.each(['constructor', 'toString', 'valueOf', 'hasOwnProperty'])(
    '%s may be left out if it is optional, and is missing if it is required',
    (name) => {
      const properties = { [name]: { type: 'string' } };
      const optional = { $schema, type: 'object', properties };
      expect(verdictOn(optional, {})).toMatchObject({ valid: true, value: {} });
      expect(verdictOn(optional, { [name]: 'a' })).toMatchObject({ value: { [name]: 'a' } });
      expect(verdictOn(optional, { [name]: 1 }).problems).toEqual([
        `${name}: must be string (received 1)`,
      ]);
      expect(verdictOn({ ...optional, required: [name] }, {}).problems).toEqual([
        `${name}: is required, but missing`,
      ]);
    },
  );

  it.each(['dependentRequired', 'dependencies'])(
    '%s asks for nothing if they are not',
    (keyword) => {
      const schema = { $schema, type: 'object', [keyword]: { toString: ['a'] } };
      expect(verdictOn(schema, {}).problems).toEqual([]);
    },
  );
});
