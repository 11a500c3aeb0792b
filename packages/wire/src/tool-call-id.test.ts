import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { toWireId } from './tool-call-id.js';

describe('the id of a tool use on the wire', () => {
  it('X7: is one that the API takes, and that of no other', () => {
    const id = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('', '__proto__', '\ud83d', '\ud83e'),
      fc.string().map(toWireId),
    );
    fc.assert(
      fc.property(id, id, (one, other) => {
        expect(toWireId(one)).toMatch(/^[a-zA-Z0-9_-]+$/);
        expect(toWireId(one) === toWireId(other)).toBe(one === other);
      }),
    );
    expect(toWireId('toolu_01-A')).toBe('toolu_01-A');
    expect(toWireId(toWireId('a.b'))).not.toBe(toWireId('a.b'));
    expect(toWireId('\ud83d')).not.toBe(toWireId('\ud83e'));
  });
});
