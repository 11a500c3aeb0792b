import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isPublicAddress } from './public-address.js';

describe('X17: isPublicAddress', () => {
  it.each([
    ['loopback', '127.0.0.1', '127.255.255.254', '::1'],
    ['unspecified', '0.0.0.0', '0.1.2.3', '::'],
    ['private', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ['carrier-grade NAT', '100.64.0.1', '100.127.255.255'],
    ['link-local', '169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
    [
      'cloud metadata',
      '169.254.169.254',
      'fd00:ec2::254',
      '100.100.100.200',
      '168.63.129.16',
      '192.0.0.192',
    ],
    ['unique-local and site-local', 'fc00::1', 'fdff::1', 'fec0::1'],
    ['multicast and broadcast', '224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1'],
    [
      'reserved, documentation, benchmarks',
      '240.0.0.1',
      '192.0.2.1',
      '198.18.0.1',
      '198.51.100.1',
      '203.0.113.1',
      '2001:db8::1',
      '3fff::1',
    ],
    ['IPv4-mapped', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8'],
    ['IPv4-compatible', '::127.0.0.1', '::7f00:1', '::8.8.8.8'],
    ['NAT64', '64:ff9b::7f00:1', '64:ff9b::10.0.0.1', '64:ff9b:1::1'],
    ['6to4', '2002:7f00:1::', '2002:a00:1::1'],
    ['Teredo', '2001::1', '2001:0:7f00:1::'],
    ['discard-only', '100::1'],
    ['not an address', '', 'localhost', '127.1', '0x7f.0.0.1', '1.2.3.4.5', '[::1]', '1.2.3.4 '],
  ])('is false for %s', (_, ...addresses) => {
    expect(addresses.filter(isPublicAddress)).toEqual([]);
  });

  it('is true for addresses of the public internet, next to reserved ranges as well', () => {
    const addresses = [
      ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0'],
      ...['126.255.255.255', '128.0.0.1', '169.253.255.255', '169.255.0.0', '172.15.255.255'],
      ...['172.32.0.0', '192.167.255.255', '192.169.0.0', '223.255.255.255', '168.63.129.17'],
      ...['2606:4700:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001::1', '2001:200::1'],
    ];
    expect(addresses.filter((address) => !isPublicAddress(address))).toEqual([]);
  });

  it('agrees with itself on all notations of an IPv6 address', () => {
    const words = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(words, (parts) => {
        const full = parts.map((part) => part.toString(16).padStart(4, '0')).join(':');
        const short = new URL(`http://[${full}]`).hostname.slice(1, -1);
        expect(isPublicAddress(short)).toBe(isPublicAddress(full));
      }),
    );
  });
});
