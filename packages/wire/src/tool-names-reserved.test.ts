import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { toolNames } from './tool-names.js';

describe('the names of our tools beside those of the vendor', () => {
  it('X14: are never those, apart from each other, and come back as they were', () => {
    const name = fc.oneof(fc.constantFrom('bash', 'bash ', 'bash  ', ' bash', 'a.b'), fc.string());
    fc.assert(
      fc.property(fc.uniqueArray(name), fc.array(name), (own, builtIn) => {
        const names = toolNames(own, builtIn);
        const wire = own.map((it) => names.toWire(it));
        expect(new Set(wire).size).toBe(own.length);
        expect(wire.filter((it) => builtIn.includes(it))).toEqual([]);
        expect(wire.map((it) => names.fromWire(it))).toEqual(own);
      }),
    );
  });

  it('stay as they are if nothing is in the way', () => {
    const names = toolNames(['weather'], ['web_search']);
    expect(names.toWire('weather')).toBe('weather');
    // It may be forced.
    expect(names.toWire('web_search')).toBe('web_search');
  });
});
