import { describe, expect, it } from '@jest/globals';
import type { Verdict } from 'millrace';
import fc from 'fast-check';
import { type ApprovalQueue, approvalsHandler, type ApprovalsHandlerOptions } from './index.js';
import { asking$, queueOf, waiting } from './asking.test-support.js';

const url = 'http://127.0.0.1/approvals';
const json = { 'content-type': 'application/json' };
type Body = Exclude<ConstructorParameters<typeof Response>[0], undefined>;
const post = (body: Body, headers: Readonly<Record<string, string>> = json): Request =>
  new Request(url, { method: 'POST', headers, body, ...{ duplex: 'half' } });

/** A desk at which one request waits. */
const filed = async (options: ApprovalsHandlerOptions = {}) => {
  const desk = queueOf();
  const verdicts: Verdict[] = [];
  const subscription = asking$(desk).subscribe((verdict) => verdicts.push(verdict));
  const { token } = await waiting(desk);
  const handle = approvalsHandler(desk, options);
  const send = (body: object) => handle(post(JSON.stringify({ token, ...body })));
  return { handle, send, token, verdicts, leave: () => subscription.unsubscribe() };
};

const error = async (response: Response) => {
  expect(response.headers.get('content-type')).toBe('application/json');
  return [response.status, await response.json()];
};

describe('the handler of approvals', () => {
  it('T12: decides, and answers 204', async () => {
    const { send, verdicts } = await filed();
    const response = await send({ approved: true, input: { amount: 1 } });
    expect([response.status, await response.text()]).toEqual([204, '']);
    expect(verdicts).toEqual([{ approved: true, input: { amount: 1 }, by: 'user' }]);
    expect(await error(await send({ approved: true }))).toEqual([
      409,
      { error: 'This request has already been decided: it was approved with another input.' },
    ]);
  });

  it('T12: distinguishes an invalid token from one that is no longer pending', async () => {
    const { send, leave } = await filed();
    expect(await error(await send({ approved: true, token: 'x.y' }))).toEqual([
      401,
      { error: 'This approval is not valid.' },
    ]);
    leave();
    expect(await error(await send({ approved: true }))).toEqual([
      410,
      { error: 'This request is no longer pending.' },
    ]);
  });

  const broken = () =>
    new ReadableStream({
      pull: (controller) => {
        controller.error(new Error('hunter2'));
      },
    });
  it.each<[string, () => Body]>([
    ['nothing', () => null],
    ['no JSON', () => '{"token":'],
    ['null', () => 'null'],
    ['a list', () => '[]'],
    ['a text', () => '"token"'],
    ['no token', () => '{"approved":true}'],
    ['a token that is none', () => '{"token":1,"approved":true}'],
    ['a token of its prototype', () => '{"__proto__":{"token":"x"},"approved":true}'],
    ['a verdict of its prototype', () => '{"token":"x","__proto__":{"approved":true}}'],
    ['no verdict', () => '{"token":"x"}'],
    ['a verdict that is none', () => '{"token":"x","approved":"true"}'],
    ['an input that is none', () => '{"token":"x","approved":true,"input":[]}'],
    ['an input without a bottom', () => `{"token":"x","approved":true,"input":${'['.repeat(3e4)}`],
    ['bytes that are no UTF-8', () => new Uint8Array([0x22, 0xff, 0xfe])],
    ['a body that breaks off', broken],
  ])('X15: refuses %s', async (_, body) => {
    const { handle, verdicts, leave } = await filed();
    expect(await error(await handle(post(body())))).toEqual([
      400,
      { error: expect.stringMatching(/^The request is malformed: ./) },
    ]);
    expect(verdicts).toEqual([]);
    leave();
  });

  it('X15: survives deeply nested input', async () => {
    const { handle, token, verdicts, leave } = await filed();
    const nested = `${'['.repeat(3e4)}${']'.repeat(3e4)}`;
    const body = `{"token":"${token}","approved":true,"input":{"a":${nested}}}`;
    const { status } = await handle(post(body));
    expect([204, 400]).toContain(status);
    expect(verdicts).toHaveLength(status === 204 ? 1 : 0);
    leave();
  });

  it('X15: accepts no other method, and no forms of other sites', async () => {
    const { handle, token, leave } = await filed();
    const got = await handle(new Request(url));
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST']);
    const body = JSON.stringify({ token, approved: true });
    for (const type of ['text/plain', 'application/jsonx', 'application/x-www-form-urlencoded']) {
      expect((await handle(post(body, { 'content-type': type }))).status).toBe(415);
    }
    const typed = { 'content-type': 'Application/JSON ; charset=utf-8' };
    expect((await handle(post(body, typed))).status).toBe(204);
    leave();
  });

  it('X15: reads no more than its limit, even if the declared length is wrong', async () => {
    const { handle, send, leave } = await filed({ maxBytes: 400 });
    let pulled = 0;
    let cancelled = false;
    const endless = new ReadableStream({
      pull: (controller) => {
        pulled += 1;
        controller.enqueue(new Uint8Array(100).fill(32));
      },
      cancel: () => {
        cancelled = true;
      },
    });
    expect((await handle(post(endless))).status).toBe(413);
    expect([pulled < 10, cancelled]).toEqual([true, true]);
    const said = { ...json, 'content-length': '401' };
    expect((await handle(post(' ', said))).status).toBe(413);
    expect((await send({ approved: true, reason: 'x'.repeat(400) })).status).toBe(413);
    leave();
  });

  it('X15: never rejects, and never reveals internal errors', async () => {
    const { handle, leave } = await filed();
    const bodies = fc.oneof(
      fc.string(),
      fc.json(),
      fc.record({ token: fc.anything(), approved: fc.anything() }).map((it) => {
        try {
          return JSON.stringify(it);
        } catch {
          return '{}';
        }
      }),
    );
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        expect([400, 401]).toContain((await handle(post(body))).status);
      }),
    );
    leave();
    const desk = { decide: () => Promise.reject(new Error('hunter2')) };
    const failed = approvalsHandler(desk)(post('{"token":"x","approved":true}'));
    expect(await error(await failed)).toEqual([500, { error: 'Something went wrong.' }]);
  });

  it('T12: refuses invalid queues and unknown options immediately', () => {
    expect(() => approvalsHandler({} as ApprovalQueue)).toThrow(/an approvalQueue\(\)/);
    expect(() => approvalsHandler(queueOf(), { max: 1 } as object)).toThrow(/no option 'max'/);
    expect(() => approvalsHandler(queueOf(), { maxBytes: 0 })).toThrow(/'maxBytes' must be/);
  });
});
