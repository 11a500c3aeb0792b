import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { toolNames } from './tool-names.js';

describe('toolNames', () => {
  it('leaves valid names as they are', () => {
    const { toWire, fromWire } = toolNames(['get_weather', 'a-b']);
    expect(toWire('get_weather')).toBe('get_weather');
    expect(fromWire('a-b')).toBe('a-b');
    expect(fromWire('never_heard_of')).toBe('never_heard_of');
  });

  it('X14: maps any names reversibly, without collision, to names that every vendor takes', () => {
    const name = fc.oneof(
      fc.string(),
      // Any code points, up to as many as a name may have, and halves of some.
      fc.string({ unit: 'binary', maxLength: 256, size: 'max' }),
      fc.constantFrom('\ud800', '\udbff', 'é', 'e\u0301'),
      fc.constantFrom('a.b', 'a/b', 'a_b', '', '__proto__', 'x'.repeat(90)),
    );
    fc.assert(
      fc.property(fc.uniqueArray(name), fc.uniqueArray(name), (declared, used) => {
        const { toWire, fromWire } = toolNames(declared);
        const all = [...new Set([...declared, ...used])];
        const wires = all.map(toWire);
        expect(new Set(wires).size).toBe(all.length);
        expect(wires.every((wire) => /^[a-zA-Z0-9_-]{1,64}$/.test(wire))).toBe(true);
        expect(wires.map(fromWire)).toEqual(all);
      }),
    );
  });

  it('X14: does not let a name take the place of another that is valid', () => {
    const stolen = toolNames(['a.b']).toWire('a.b');
    const { toWire, fromWire } = toolNames(['a.b', stolen]);
    expect(toWire(stolen)).toBe(stolen);
    expect(toWire('a.b')).not.toBe(stolen);
    expect(fromWire(toWire('a.b'))).toBe('a.b');
  });

  it('is the same for the same list', () => {
    const names = ['files.read', 'files/read', 'x'.repeat(70)];
    expect(names.map(toolNames(names).toWire)).toEqual(names.map(toolNames(names).toWire));
    expect(toolNames(names).toWire('files.read')).toBe('files_read_1yqgun6');
  });
});
