import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { rawJson, rawJsonList, stringifyObject } from './raw-json.js';

const name = fc.oneof(fc.string(), fc.constantFrom('__proto__', 'toString', '"', '\u2028'));
const unwritable = fc.constantFrom(undefined, () => 1, Symbol('none'));
const value = fc.oneof(fc.jsonValue(), unwritable, fc.constant(new Date(0)));
const fields = fc.array(fc.tuple(name, value)).map((entries) => Object.fromEntries(entries));

describe('writeObject', () => {
  it('writes what JSON.stringify does', () => {
    fc.assert(
      fc.property(fields, (given) => {
        expect(stringifyObject(given)).toBe(JSON.stringify(given));
      }),
    );
  });

  it('takes what is written already as it is', () => {
    fc.assert(
      fc.property(fields, fc.array(fc.jsonValue()), (given, list) => {
        const texts = list.map((it) => JSON.stringify(it));
        const written = {
          ...given,
          list: rawJsonList(texts),
          object: rawJson(stringifyObject(given)),
        };
        expect(stringifyObject(written)).toBe(JSON.stringify({ ...given, list, object: given }));
      }),
    );
  });

  it('takes text for text if nothing marks it as JSON', () => {
    expect(stringifyObject({ text: '{"a":1}' })).toBe('{"text":"{\\"a\\":1}"}');
    expect(stringifyObject({ deeper: { json: '{"a":1}' } })).toBe(
      '{"deeper":{"json":"{\\"a\\":1}"}}',
    );
  });
});
