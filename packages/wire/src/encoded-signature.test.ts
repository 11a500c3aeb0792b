import { describe, expect, it } from '@jest/globals';
import { decodeSignature, encodeSignature, isEncodedSignature } from './encoded-signature.js';

describe('kept', () => {
  it('R4: gives back what was kept for the same vendor', () => {
    const item = { type: 'reasoning', encrypted_content: 'x' };
    const signature = encodeSignature('Mine', 'item', item);
    expect(decodeSignature('Mine', 'item', signature)).toEqual(item);
    expect(isEncodedSignature(signature)).toBe(true);
  });

  it.each([
    ['of another vendor', encodeSignature('Yours', 'item', {})],
    ['of another kind', encodeSignature('Mine', 'extra_content', {})],
    ['that is base64', 'EqQBCkYIBRgC'],
    ['that is JSON', '{"__proto__":{"vendor":"Mine","kind":"item","value":{}}}'],
    ['that is half of one', encodeSignature('Mine', 'item', {}).slice(0, -2)],
    ['that is a number', '7'],
    ['that is null', 'null'],
    ['that is empty', ''],
    ['that is none', undefined],
  ])('passes over a signature %s', (_what, signature) => {
    expect(decodeSignature('Mine', 'item', signature)).toBeUndefined();
  });
});
