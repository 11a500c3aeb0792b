/**
 * Whether the host of a URL is this machine, or an address that is not public: private, loopback, link-local, shared,
 * multicast or reserved. The parser of URLs has normalized all forms of IPv4 addresses, such as `0x7f.1`. Names are only
 * known by their endings: what they resolve to is checked by the program's `fetch`.
 */
export const isLocalHost = (hostname: string): boolean => {
  const host = hostname.toLowerCase().replace(/\.$/u, '');
  if (host.startsWith('[')) return isLocalIPv6(host.slice(1, -1));
  if (/^\d+(?:\.\d+){3}$/u.test(host)) return isLocalIPv4(host.split('.').map(Number));
  return /(?:^|\.)(?:localhost|local|internal|localdomain|home\.arpa)$/u.test(host);
};

/** First, last octets of ranges that are not public (IANA special-purpose registry), compared as numbers. */
const ranges: readonly (readonly [from: string, bits: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];

const numberOf = (octets: readonly number[]): number =>
  octets.reduce((sum, octet) => sum * 256 + octet, 0);

const isLocalIPv4 = (octets: readonly number[]): boolean => {
  const address = numberOf(octets);
  return ranges.some(([from, bits]) => {
    const size = 2 ** (32 - bits);
    const first = numberOf(from.split('.').map(Number));
    return address >= first && address < first + size;
  });
};

/** Only 2000::/3 is assigned to public addresses, without documentation, benchmarks, Teredo and 6to4. */
const isLocalIPv6 = (host: string): boolean => {
  const [first = '', second = ''] = host.split(':');
  const head = Number.parseInt(first, 16);
  if (!(head >= 0x2000 && head <= 0x3fff)) return true;
  const next = Number.parseInt(second === '' ? '0' : second, 16);
  return (
    (head === 0x2001 && (next < 0x200 || next === 0xdb8)) || head === 0x2002 || head === 0x3fff
  );
};
