import { describe, expect, it } from '@jest/globals';
import { askedAddress, noteAddress } from './asked.js';

describe('noteAddress', () => {
  it('remembers where something came from first', () => {
    const about = new Headers();
    noteAddress(about, '');
    noteAddress(about, 'http://acme.invalid/v1');
    noteAddress(about, 'http://elsewhere.invalid/');
    expect(askedAddress(about)?.href).toBe('http://acme.invalid/v1');
    expect(askedAddress(new Headers())).toBeUndefined();
  });

  it('passes over what cannot be remembered, and what is no address', () => {
    const about = {};
    noteAddress('text', 'http://acme.invalid/');
    noteAddress(about, 'nowhere');
    expect([askedAddress('text'), askedAddress(about)]).toEqual([undefined, undefined]);
  });
});
