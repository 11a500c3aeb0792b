import { describe, expect, it } from '@jest/globals';
import { recordAddress, recordedAddress } from './request-address.js';

describe('noteAddress', () => {
  it('remembers where something came from first', () => {
    const about = new Headers();
    recordAddress(about, '');
    recordAddress(about, 'http://acme.invalid/v1');
    recordAddress(about, 'http://elsewhere.invalid/');
    expect(recordedAddress(about)?.href).toBe('http://acme.invalid/v1');
    expect(recordedAddress(new Headers())).toBeUndefined();
  });

  it('passes over what cannot be remembered, and what is no address', () => {
    const about = {};
    recordAddress('text', 'http://acme.invalid/');
    recordAddress(about, 'nowhere');
    expect([recordedAddress('text'), recordedAddress(about)]).toEqual([undefined, undefined]);
  });
});
