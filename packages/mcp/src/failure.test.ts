import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { failureOf } from './failure.js';
import { type McpServer, serverOf } from './server-options.js';

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
    stdio: { command: 'x', args: ['--root', '/work/projects', '--mode=strict'] },
  });
  const text = 'There is no /work/projects in strict mode.';
  expect(failureOf(server, 'to run', new Error(text)).message).toContain(text);
});
