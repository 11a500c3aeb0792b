import { BlockList, isIP } from 'node:net';

/**
 * Whether an IP address belongs to the public internet. Private, loopback, link-local, multicast and reserved ranges
 * do not (https://www.iana.org/assignments/iana-ipv4-special-registry), nor do IPv6 addresses that contain an IPv4
 * address (mapped, compatible, NAT64, 6to4, Teredo): a gateway may forward these into a private network.
 */
export const isPublicAddress = (address: string): boolean => {
  const family = isIP(address);
  if (family === 4) return !reservedIPv4.check(address, 'ipv4');
  // An address with a zone, such as fe80::1%eth0, is link-local.
  if (family !== 6 || address.includes('%')) return false;
  return globalIPv6.check(address, 'ipv6') && !reservedIPv6.check(address, 'ipv6');
};

const listOf = (family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/');
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
};

const reservedIPv4 = listOf('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // The metadata services of most clouds are at 169.254.169.254.
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // A public address, but only virtual machines of Azure reach it: their metadata service.
  '168.63.129.16/32',
]);

/** All unicast addresses assigned so far; loopback, unique-local, link-local, multicast and NAT64 are outside. */
const globalIPv6 = listOf('ipv6', ['2000::/3']);

const reservedIPv6 = listOf('ipv6', [
  // Teredo, benchmarks, ORCHID.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
]);
