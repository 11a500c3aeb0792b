import { describe, expect, it } from '@jest/globals';
import { frozen } from './message.js';

describe('frozen', () => {
  it('X19: freezes plain data through and through, and gives it back', () => {
    const data = {
      list: [{ deep: { deeper: [1] } }],
      bare: { __proto__: null, in: {} },
    };
    expect(frozen(data)).toBe(data);
    for (const part of [
      data,
      data.list,
      data.list[0],
      data.list[0]?.deep,
      data.list[0]?.deep.deeper,
      data.bare,
      data.bare.in,
    ]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  it('leaves alone what is more than data', () => {
    const bytes = new Uint8Array(2);
    const instance = new (class {
      field = {};
    })();
    frozen({ bytes, instance, date: new Date(0) });
    expect(Object.isFrozen(instance)).toBe(false);
    expect(Object.isFrozen(instance.field)).toBe(false);
    bytes[0] = 1;
    expect(bytes[0]).toBe(1);
  });

  it('comes to an end where data goes round in a circle', () => {
    const ring: { self?: unknown } = {};
    ring.self = ring;
    expect(Object.isFrozen(frozen(ring))).toBe(true);
  });

  it.each([undefined, null, 1, 'text', true])('gives back %p', (value) => {
    expect(frozen(value)).toBe(value);
  });
});
