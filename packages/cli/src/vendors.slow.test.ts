import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type FaultServer, startFaultServer, streamed, streamOf } from '@millrace/fault-server';
import { main } from './main.js';
import { fakeEnvironment } from './terminal/fake-terminal.test-support.js';

// Real sockets and processes may have to wait for a busy machine.
jest.setTimeout(240_000);

const secret = 'sk-proj-9fQ2mZxT4vLr8KcYb1NwHd7s';
const asked = {
  text: 'Let me count.',
  toolCalls: [{ name: 'calculator', arguments: '{"expression":"2+2"}' }],
};
let server: FaultServer;

beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());

const ran = async (env: Readonly<Record<string, string>>) => {
  const { environment, out, err } = fakeEnvironment(['--model', 'big', 'What is 2 + 2?'], { env });
  const code = await main(environment);
  return { code, out: out.text(), err: err.text() };
};

describe('millrace with a vendor', () => {
  it.each([
    ['chat', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'],
    ['messages', 'ANTHROPIC_API_KEY', 'ANTHROPIC_BASE_URL'],
  ] as const)(
    'X16: asks over %s where %s is set, says whom, and uses its tools',
    async (wire, key, url) => {
      const answers = [asked, { text: 'It is 4.' }];
      const vendor = await server.play({
        responses: answers.map((answer) => streamed(streamOf(wire, answer))),
      });
      const { code, out, err } = await ran({ [key]: secret, [url]: vendor.url });
      expect([code, err]).toEqual([0, '']);
      expect(out).toContain(`Millrace, with the model big at ${new URL(vendor.url).host}.`);
      expect(out).toContain('→ calculator expression: "2+2"');
      expect(out).toContain('It is 4.');
      expect((await vendor.requests()).flatMap(({ violations }) => violations)).toEqual([]);
    },
  );

  it('X10: says what to do about a wrong key, and does not show it', async () => {
    const vendor = await server.play({
      responses: [
        [
          { type: 'status', code: 401, headers: { 'content-type': 'application/json' } },
          { type: 'bytes', bytes: '{"error":{"message":"Incorrect API key: {{key}}","type":"x"}}' },
        ],
      ],
    });
    const { code, out, err } = await ran({ OPENAI_API_KEY: secret, OPENAI_BASE_URL: vendor.url });
    expect(code).toBe(1);
    expect(err).toMatch(
      /✗ The server at 127\.0\.0\.1:\d+ rejected the credentials \(401, x\)[^]*\n {2}auth, status 401\n/,
    );
    expect(err).toContain('Check the API key');
    expect(out + err).not.toContain(secret);
  });
});
