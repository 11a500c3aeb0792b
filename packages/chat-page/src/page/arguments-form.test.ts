import { describe, expect, it } from '@jest/globals';
import { assert, constant, dictionary, json, oneof, property, string } from 'fast-check';
import { editOf, readEdit } from './arguments-form.js';
import type { Fields } from './fields.js';

const schema = {
  type: 'object',
  required: ['to', 'amount'],
  properties: {
    to: { type: 'string' },
    amount: { type: 'number' },
    isUrgent: { type: 'boolean' },
    how: { enum: ['cash', 'card'] },
    address: { type: 'object', properties: { city: { type: 'string' } } },
  },
};

describe('the form for arguments', () => {
  it('begins with them', () => {
    const given = { to: 'Ann', amount: 5, how: 'card' };
    const edit = editOf(schema, given);
    expect(edit?.entry).toMatchObject({ to: 'Ann', amount: '5', how: [1] });
    expect(edit && readEdit(edit)).toMatchObject({ value: given });
  });

  it.each([
    ['an argument that the schema does not have', { to: 'Ann', amount: 5, more: 1 }],
    ['a value of another type', { to: 'Ann', amount: 'five' }],
    ['spaces around text', { to: ' Ann ', amount: 5 }],
    ['arguments that are no object', [1]],
  ])('does not exist for %s: it would be lost', (_, given) => {
    expect(editOf(schema, given)).toBeUndefined();
    expect(editOf({ type: 'object' }, given)).toBeUndefined();
  });

  it('loses no argument', () => {
    const value = oneof(
      string(),
      json().map((it): unknown => JSON.parse(it)),
      constant('card'),
    );
    const names = oneof(...Object.keys(schema.properties).map((it) => constant(it)), string());
    assert(
      property(dictionary(names, value), (given) => {
        const edit = editOf(schema, given);
        if (edit === undefined) return;
        const { value: read } = readEdit(edit) as { value: Fields };
        expect(read).toMatchObject(JSON.parse(JSON.stringify(given)) as object);
      }),
    );
  });
});
