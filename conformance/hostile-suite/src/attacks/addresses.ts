import type { LookupFunction } from 'node:net';
import { fetchPage, guardedFetch } from '@millrace/tools/web';
import type { Tool } from 'millrace';
import { outputOf } from '../driver/run-tool.js';
import { openSite, type Site } from '../driver/serving.js';
import { type Attack, scene } from '../scene.js';

/** What these names resolve to. Every other name resolves to loopback, as one of an attacker's can. */
const names: Readonly<Record<string, readonly string[]>> = {
  'mixed.test': ['10.0.0.1', '127.0.0.1'],
  'mapped.test': ['::ffff:127.0.0.1'],
  'loopback-6.test': ['::1'],
  'name.test': ['localhost'],
  'zone.test': ['fe80::1%lo'],
  'nothing.test': [],
};

const lookup: LookupFunction = (name, _, callback) => {
  const addresses = names[name] ?? ['127.0.0.1'];
  callback(
    null,
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
  );
};

/** `PORT` is the one of the service. */
const addresses = [
  ...['http://127.0.0.1:PORT', 'http://127.1:PORT', 'http://0x7f.1:PORT', 'http://0177.0.0.1:PORT'],
  ...['http://2130706433:PORT', 'http://017700000001:PORT', 'http://0:PORT', 'http://0.0.0.0:PORT'],
  ...['http://127.0.0.1.:PORT', 'http://127。0。0。1:PORT', 'http://①②⑦.0.0.1:PORT'],
  ...['http://%31%32%37.0.0.1:PORT', 'http://12\n7.0.0.1:PORT', 'http://127.0.0.1:PORT\t'],
  ...['http://[::1]:PORT', 'http://[::]:PORT', 'http://[::ffff:127.0.0.1]:PORT'],
  ...['http://[::ffff:7f00:1]:PORT', 'http://[0:0:0:0:0:ffff:7f00:0001]:PORT'],
  ...['http://[64:ff9b::7f00:1]:PORT', 'http://[64:ff9b:1::7f00:1]:PORT'],
  ...['http://[2002:7f00:1::]:PORT', 'http://[2001:0:7f00:1::]:PORT', 'http://[fe80::1]:PORT'],
  ...['http://[fd00:ec2::254]', 'http://[::127.0.0.1]:PORT', 'http://[::ffff:0:127.0.0.1]:PORT'],
  ...['http://[::1%25lo]:PORT', 'http://[5f00::1]', 'http://[100::1]', 'http://[2001:db8::1]'],
  ...['http://[3fff::1]', 'http://[2620:4f:8000::1]', 'http://localhost:PORT'],
  ...['http://localhost.:PORT', 'http://LOCALHOST:PORT', 'http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT'],
  ...['http://localtest.me:PORT', 'http://127.0.0.1.nip.io:PORT', 'http://internal.test:PORT'],
  ...Object.keys(names).map((name) => `http://${name}:PORT`),
  ...['http://169.254.169.254/latest/meta-data/', 'http://metadata.google.internal'],
  ...['http://100.100.100.200', 'http://168.63.129.16', 'http://192.0.0.192', 'http://10.0.0.1'],
  ...['http://198.18.0.1', 'http://192.88.99.1', 'http://224.0.0.1', 'http://240.0.0.1'],
  ...['http://255.255.255.255', 'http://user@127.0.0.1:PORT', 'http://example.test@127.0.0.1:PORT'],
  ...['http://127.0.0.1:PORT#@example.test', 'http://example.test\\@127.0.0.1:PORT'],
  ...['http:127.0.0.1:PORT', 'http:///127.0.0.1:PORT', '//127.0.0.1:PORT', 'http://xn--11hy'],
  ...['file:///etc/passwd', 'ftp://127.0.0.1:PORT', 'gopher://127.0.0.1:PORT', 'data:text/plain,x'],
  ...['unix:/var/run/docker.sock', 'http://unix:/var/run/docker.sock:/x'],
];

const targets = [
  ...['http://127.0.0.1:PORT/', '//127.0.0.1:PORT/', 'http://[::ffff:127.0.0.1]:PORT/'],
  ...['file:///etc/passwd', 'http://user:password@127.0.0.1:PORT/', 'http://internal.test:PORT/x'],
];

interface World {
  readonly site: Site;
  readonly hits: string[];
  readonly page: Tool;
  readonly fetch: ReturnType<typeof guardedFetch>;
}

const open = async (): Promise<World> => {
  const hits: string[] = [];
  const site = await openSite((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
    const to = searchParams.get('to');
    hits.push(`${request.headers.host ?? ''}${pathname}`);
    if (to !== null) response.writeHead(302, { location: to }).end();
    else response.writeHead(200, { 'content-type': 'text/plain' }).end('INTERNAL');
  });
  const options = { lookup, ports: [80, 443, site.port] };
  return {
    site,
    hits,
    page: fetchPage({ ...options, allowPrivate: ['start.test'] }),
    fetch: guardedFetch(options),
  };
};

/** Everything that reached the service. */
const reached = ({ hits }: World, allowed = 0): string | undefined =>
  hits.splice(0).length > allowed ? 'the internal service was reached' : undefined;

const here = ({ site }: World, url: string): string => url.replaceAll('PORT', String(site.port));

const reading =
  (url: string): Attack<World> =>
  async (world) => {
    const output = await outputOf([world.page], 'fetch_page', { url: here(world, url) });
    return reached(world) ?? (output.includes('INTERNAL') ? output : undefined);
  };

/** The first request is allowed; the one that it redirects to is not. */
const redirected =
  (to: string): Attack<World> =>
  async (world) => {
    const url = here(world, `http://start.test:PORT/?to=${encodeURIComponent(here(world, to))}`);
    const output = await outputOf([world.page], 'fetch_page', { url });
    if (!world.hits.some((hit) => hit.startsWith('start.test'))) return `no redirect: ${output}`;
    return reached(world, 1) ?? (output.includes('INTERNAL') ? output : undefined);
  };

const fetched =
  (url: string): Attack<World> =>
  async (world) => {
    const outcome = await world.fetch(here(world, url)).then(
      ({ status }) => `it answered ${status}`,
      () => undefined,
    );
    return reached(world) ?? outcome;
  };

export const addressScenes = [
  scene({
    rule: 'X17',
    promise: 'A URL that a model chooses leads to public addresses only',
    open,
    close: ({ site }) => site.close(),
    attacks: {
      ...Object.fromEntries(addresses.map((url) => [`fetch_page ${url}`, reading(url)])),
      ...Object.fromEntries(targets.map((url) => [`a redirect to ${url}`, redirected(url)])),
      ...Object.fromEntries(
        ['http://localhost:PORT/', 'http://[::1]:PORT/', 'http://internal.test:PORT/'].map(
          (url) => [`guardedFetch ${url}`, fetched(url)],
        ),
      ),
    },
  }),
];
