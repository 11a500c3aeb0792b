import { describe, expect, it } from '@jest/globals';
import { isKept, keep, kept } from './kept.js';

describe('kept', () => {
  it('R4: gives back what was kept for the same vendor', () => {
    const item = { type: 'reasoning', encrypted_content: 'x' };
    const signature = keep('Mine', 'item', item);
    expect(kept('Mine', 'item', signature)).toEqual(item);
    expect(isKept(signature)).toBe(true);
  });

  it.each([
    ['of another vendor', keep('Yours', 'item', {})],
    ['of another kind', keep('Mine', 'extra_content', {})],
    ['that is base64', 'EqQBCkYIBRgC'],
    ['that is JSON', '{"__proto__":{"vendor":"Mine","kind":"item","value":{}}}'],
    ['that is half of one', keep('Mine', 'item', {}).slice(0, -2)],
    ['that is a number', '7'],
    ['that is null', 'null'],
    ['that is empty', ''],
    ['that is none', undefined],
  ])('passes over a signature %s', (_what, signature) => {
    expect(kept('Mine', 'item', signature)).toBeUndefined();
  });
});
