import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { filter, firstValueFrom, map, timeout } from 'rxjs';
import { failureOf } from './failure.js';
import { mcp } from './index.js';
import { type McpServer, serverOf } from './server-options.js';
import { answering, at } from './web.test-support.js';

const secret = 'sk-0123456789abcdef';
const elsewhere: readonly (readonly [where: string, server: McpServer])[] = (
  [
    [
      'a header',
      { http: { url: 'http://x.example/mcp', headers: { authorization: `Bearer ${secret}` } } },
    ],
    [
      'the query of the URL',
      { http: { url: `https://x.example/mcp?transport=http&apiKey=${secret}` } },
    ],
    ['the path of the URL', { http: { url: `https://x.example/s/${secret}0/mcp` } }],
    ['the password of the URL', { http: { url: `https://user:${secret}@x.example/mcp` } }],
    ['a variable', { stdio: { command: 'x', env: { KEY: secret } } }],
    ['an argument after its name', { stdio: { command: 'x', args: ['--api-key', secret] } }],
    ['an argument with its name', { stdio: { command: 'x', args: [`--token=${secret}`] } }],
    [
      'a variable as an argument',
      { stdio: { command: 'docker', args: ['-e', `API_KEY=${secret}`] } },
    ],
    ['a URL as an argument', { stdio: { command: 'x', args: [`postgres://app:${secret}@db/x`] } }],
  ] as const
).map(([where, how]) => [where, { name: 'x', ...how }]);

it.each(elsewhere)(
  'X10: a secret in %s is removed, wherever a message is cut',
  (_where, options) => {
    const server = serverOf('mcp()', options);
    const shown = (text: string): string => failureOf(server, 'to run', new Error(text)).message;
    fc.assert(
      fc.property(fc.nat(1_200), fc.nat(600), (before, after) => {
        const message = shown(`${'x'.repeat(before)} ${secret}0 ${'y'.repeat(after)}`);
        expect(message).not.toContain(secret.slice(0, 6));
        expect(message.length).toBeLessThan(600);
      }),
    );
  },
);

it('X10: what only looks like a secret stays', () => {
  const server = serverOf('mcp()', {
    name: 'x',
    stdio: { command: 'x', args: ['--root', '/srv/projects', '--mode=strict'] },
  });
  const text = 'There is no /srv/projects in strict mode.';
  expect(failureOf(server, 'to run', new Error(text)).message).toContain(text);
});

describe('X10: a secret that a server repeats in its list', () => {
  const token = 'sk.0123456789abcdef';
  const bad = { type: 'object', properties: { a: { type: token, pattern: `(${token}` } } };
  const use = (name: string, more: object = {}) => ({
    name,
    description: 'Is use.',
    inputSchema: { type: 'object' },
    ...more,
  });

  it.each([
    [
      'the name of an entry that cannot be read',
      [use('use'), use(token, { inputSchema: { type: 'string' } })],
      'entry',
    ],
    ['a name that is taken', [use(`${token}!`), use(`${token}?`)], 'the name is taken'],
    ['the name of a tool without a usable schema', [use(token, { inputSchema: bad })], 'left out'],
    ['a schema', [use('use', { inputSchema: bad })], "'use'"],
    ['a reference', [use('use', { inputSchema: { type: 'object', $ref: token } })], "'use'"],
  ])('is removed from the warning: %s', async (_where, tools, expected) => {
    const url = await answering({ 'tools/list': () => ({ tools }) });
    const headers = { authorization: `Bearer ${token}` };
    const warnings = await firstValueFrom(
      mcp(at(url, { headers })).servers$.pipe(
        map(([server]) => server?.warnings ?? []),
        filter((all) => all.length > 0),
        timeout(5_000),
      ),
    );
    expect(warnings.join()).toContain(expected);
    expect(warnings.join()).not.toMatch(/0123456789/);
  });

  it('is removed from the warning about a failed decider', async () => {
    let lists = 0;
    const url = await answering({
      initialize: () => ({
        protocolVersion: '2025-11-25',
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'web', version: '1' },
      }),
      'tools/list': () => ({ tools: [use(token, { description: `Is ${(lists += 1)}.` })] }),
    });
    const server = at(
      url,
      { headers: { authorization: `Bearer ${token}` } },
      {
        onChanged: ({ after }) => {
          throw new Error(`No: ${after.name}`);
        },
      },
    );
    const servers = mcp(server);
    // Two connections, and two lists.
    await firstValueFrom(servers.servers$.pipe(filter(([it]) => it?.status === 'connected')));
    const warnings = await firstValueFrom(
      servers.servers$.pipe(
        map(([it]) => it?.warnings ?? []),
        filter((all) => all.some((it) => it.includes("'onChanged' failed"))),
      ),
    );
    expect(warnings.join()).toContain("'onChanged' failed for '_removed_': No: [removed]");
    expect(warnings.join()).not.toMatch(/0123456789/);
  });
});
