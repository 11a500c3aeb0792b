import { describe, expect, it } from '@jest/globals';
import { assistant, use } from './conversation.test-support.js';
import { toolIds } from './tool-ids.js';
import { profiles } from './vendors.js';

const long = 'x'.repeat(41);

describe('toolIds', () => {
  it('X7: keeps ids that fit, and numbers the others in their order', () => {
    const toWire = toolIds([assistant(use('c1'), use(long)), assistant(use(`${long}2`))]);
    expect(['c1', long, `${long}2`].map(toWire)).toEqual(['c1', 'call_1', 'call_2']);
    expect(toWire(long)).toBe('call_1');
  });

  it('X7: never gives an id that is taken', () => {
    const toWire = toolIds([assistant(use(long), use('call_1'), use('call_2'))]);
    expect(['call_1', 'call_2', long].map(toWire)).toEqual(['call_1', 'call_2', 'call_3']);
  });

  it('X8: gives Mistral nine letters and digits', () => {
    const ids = ['abcdefgh1', 'call_1', '__proto__', 'constructor'];
    const toWire = toolIds([assistant(...ids.map((id) => use(id)))], profiles.mistral.toolIds);
    const wire = ids.map(toWire);
    expect(wire[0]).toBe('abcdefgh1');
    expect(new Set(wire).size).toBe(4);
    wire.forEach((id) => expect(id).toMatch(/^[a-zA-Z0-9]{9}$/u));
  });
});
