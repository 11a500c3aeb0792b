import { describe, expect, it } from '@jest/globals';
import type { ApprovalRequest, Verdict } from 'millrace';
import { marbles } from 'millrace/testing';
import fc from 'fast-check';
import { createHash, createHmac } from 'node:crypto';
import { inspect, isDeepStrictEqual } from 'node:util';
import { of, type Subscription, VirtualTimeScheduler } from 'rxjs';
import { approvalQueue, type ApprovalQueueOptions, type PendingApproval } from './index.js';
import { asking$, queueOf, key, rejection, waiting, waitingNow } from './asking.test-support.js';

const refusal = (status: number) => expect.objectContaining({ code: 'invalidResume', status });

/** Subscribes, and keeps what comes. */
const heard = (...asked: Parameters<typeof asking$>) => {
  const seen: unknown[] = [];
  const subscription: Subscription = asking$(...asked).subscribe({
    next: (verdict) => seen.push(verdict),
    complete: () => seen.push('|'),
  });
  return { seen, subscription };
};

describe('an approval queue', () => {
  it.each<[string, Verdict, Verdict]>([
    ['yes', true, { approved: true }],
    ['no', false, { approved: false }],
    ['yes, as an object', { approved: true }, { approved: true }],
    [
      'a reason',
      { approved: false, reason: 'Too much.' },
      { approved: false, reason: 'Too much.' },
    ],
    [
      'another input',
      { approved: true, input: { amount: 4 } },
      { approved: true, input: { amount: 4 } },
    ],
  ])('T12: files a request, and passes on what was decided: %s', async (_, verdict, passed) => {
    const desk = queueOf();
    const { seen } = heard(desk);
    const { token } = await waiting(desk);
    expect(seen).toEqual([]);
    await desk.decide(token, verdict);
    expect(seen).toEqual([{ ...(typeof passed === 'object' && passed), by: 'user' }, '|']);
    expect(await waitingNow(desk)).toEqual([]);
  });

  it('T12: signs the call, the tool, the use, the hash of the arguments and the expiry', async () => {
    const desk = queueOf({ expiresInMs: 1000 });
    const scheduler = new VirtualTimeScheduler();
    const { subscription } = heard(
      desk,
      { input: { b: [{ d: 1, c: 'é' }], a: 2 } },
      { scheduler, sessionId: 's1' },
    );
    const shown = await waiting(desk);
    const [body = '', mac] = shown.token.split('.');
    expect(mac).toBe(createHmac('sha256', key).update(body).digest('base64url'));
    const args = createHash('sha256').update('{"a":2,"b":[{"c":"é","d":1}]}').digest('base64url');
    const claims: unknown = JSON.parse(Buffer.from(body, 'base64url').toString());
    const nonce = expect.stringMatching(/^[\w-]{22}$/);
    expect(claims).toEqual({ v: 1, call: 'c1', tool: 'pay', use: 'u1', args, exp: 1000, nonce });
    expect(shown).toEqual({
      token: shown.token,
      ...{ tool: 'pay', toolCallId: 'u1', callId: 'c1', sessionId: 's1', expiresAt: 1000 },
      digest: expect.stringMatching(/^[\w-]{43}$/),
      input: { b: [{ d: 1, c: 'é' }], a: 2 },
      mayEdit: true,
    });
    subscription.unsubscribe();
  });

  it.each([
    [false, undefined],
    [true, true],
    [() => false, true],
  ])('T12: shows a client whether it may edit: %s', async (edits, mayEdit) => {
    const desk = queueOf({ edits });
    const { subscription } = heard(desk);
    expect((await waiting(desk)).mayEdit).toBe(mayEdit);
    subscription.unsubscribe();
  });

  it('T12: shows plain JSON, for any input of a tool', async () => {
    const desk = queueOf();
    const cycle: Record<string, unknown> = { n: 1 };
    cycle['it'] = cycle;
    const input = { path: 'x', cycle, run: () => 1, big: 5n, none: undefined };
    const { subscription } = heard(desk, { input });
    expect((await waiting(desk)).input).toEqual({
      ...{ path: 'x', run: null, big: '5' },
      cycle: '(not representable in JSON)',
    });
    subscription.unsubscribe();
  });

  it.each(['{"a":1,"constructor":{"prototype":{"a":2}}}', '{"a":[{"__proto__":{"b":1}}]}'])(
    'T12, X15: denies what it cannot show: %s',
    async (json) => {
      const desk = queueOf();
      const input = JSON.parse(json) as Record<string, unknown>;
      const { seen } = heard(desk, { input });
      expect(seen).toEqual([
        { approved: false, reason: 'Its arguments cannot be shown to the reviewer.' },
        '|',
      ]);
      expect(await waitingNow(desk)).toEqual([]);
    },
  );

  it('T12: an input that the tool rejects leaves the token valid', async () => {
    const desk = queueOf();
    const problems$: ApprovalRequest['problems$'] = (input) =>
      of(JSON.stringify(input) === '{"amount":5}' ? [] : ['amount: must be <= 100']);
    const { seen } = heard(desk, { problems$ });
    const { token } = await waiting(desk);
    const edit = (amount: number) => ({ approved: true, input: { amount } });
    expect(await rejection(desk.decide(token, edit(500)))).toMatchObject({
      code: 'invalidRequest',
      status: 422,
      userMessage: 'The input is not valid: amount: must be <= 100',
    });
    expect(seen).toEqual([]);
    await desk.decide(token, edit(5));
    expect(seen).toEqual([{ ...edit(5), by: 'user' }, '|']);
  });

  it('T12: a token decides once, even if several decide concurrently or the call is over', async () => {
    const desk = queueOf();
    const { seen } = heard(desk);
    const { token } = await waiting(desk);
    const verdicts: readonly Verdict[] = [true, false, true, { approved: false }];
    const ends = await Promise.all(verdicts.map((it) => rejection(desk.decide(token, it))));
    const isApproved = isDeepStrictEqual(seen[0], { approved: true, by: 'user' });
    const told = verdicts.map((it) =>
      (it === true) === isApproved ? 'it resolved' : refusal(409),
    );
    expect(ends).toEqual(told);
    expect(seen).toHaveLength(2);
    const { subscription } = heard(desk);
    const other = await waiting(desk);
    expect(other.token).not.toBe(token);
    expect(await rejection(desk.decide(token, isApproved))).toBe('it resolved');
    expect(await rejection(desk.decide(token, !isApproved))).toEqual(refusal(409));
    expect(await waitingNow(desk)).toEqual([other]);
    subscription.unsubscribe();
  });

  const shown = { approved: true, input: { amount: 5 } };
  const edited = { approved: true, input: { amount: 4 } };
  const denied = { approved: false, reason: 'No.' };
  it.each<[Verdict, Verdict, string | undefined]>([
    [true, true, undefined],
    [true, { approved: true }, undefined],
    [true, shown, undefined],
    [shown, true, undefined],
    [true, edited, 'approved'],
    [true, false, 'approved'],
    [shown, edited, 'approved'],
    [edited, edited, undefined],
    // Two people: one edits, the other approves what was shown.
    [edited, true, 'approved with another input'],
    [edited, shown, 'approved with another input'],
    [edited, { approved: true, input: { amount: 3 } }, 'approved with another input'],
    [edited, false, 'approved with another input'],
    [false, denied, undefined],
    [denied, false, undefined],
    [denied, true, 'refused'],
    [denied, edited, 'refused'],
  ])('T12: after %j, %j on the same request: %s', async (first, second, counting) => {
    const desk = queueOf();
    const { seen } = heard(desk);
    const { token } = await waiting(desk);
    await desk.decide(token, first);
    const end = await rejection(desk.decide(token, second));
    const message = `This request has already been decided: it was ${counting}.`;
    if (counting === undefined) expect(end).toBe('it resolved');
    else expect(end).toMatchObject({ code: 'invalidResume', status: 409, message });
    expect(seen).toEqual([
      { ...(typeof first === 'boolean' ? { approved: first } : first), by: 'user' },
      '|',
    ]);
  });

  it('T12: a token that is not signed in this way decides nothing, and reveals nothing', async () => {
    const desk = queueOf();
    const { subscription } = heard(desk);
    const { token } = await waiting(desk);
    const alphabet =
      'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n'.split('');
    const flipped = (at: number, by: string) => token.slice(0, at) + by + token.slice(at + 1);
    const message = 'This approval is not valid.';
    const isRefused = async (tampered: string) => {
      expect(await rejection(desk.decide(tampered, true))).toMatchObject({
        ...{ code: 'invalidResume', status: 401, message },
      });
    };
    // The last character of a MAC has bits that say nothing.
    for (const by of alphabet.filter((it) => !token.endsWith(it))) {
      await isRefused(flipped(token.length - 1, by));
    }
    const tampered = fc.oneof(
      fc
        .tuple(fc.nat(token.length - 1), fc.constantFrom(...alphabet))
        .map(([at, by]) => flipped(at, by)),
      fc.nat(token.length - 1).map((at) => token.slice(0, at)),
      fc.nat(token.length - 1).map((at) => token.slice(at + 1)),
      fc.string().map((more) => token + more),
      fc.string().map((more) => more + token),
      fc.string(),
      fc.constantFrom(`${token}.`, `.${token}`, token.split('.').reverse().join('.'), '.', ''),
    );
    await fc.assert(
      fc.asyncProperty(
        tampered.filter((it) => it !== token),
        isRefused,
      ),
      { numRuns: 300 },
    );
    const none: readonly unknown[] = [undefined, null, 1, {}, [token]];
    for (const it of none) await isRefused(it as string);
    await desk.decide(token, true);
    subscription.unsubscribe();
  });

  it('T12: verifies tokens signed by any of its keys, and no others', async () => {
    const [old, next] = ['o'.repeat(32), new Uint8Array(32).fill(7)];
    const before = queueOf({ key: old });
    const after = queueOf({ key: [next, old] });
    const [first, second] = [heard(before), heard(after)];
    const [issued, rotated] = [await waiting(before), await waiting(after)];
    // Both know it by its signature; where nobody waits for it there is nothing to decide.
    expect(await rejection(after.decide(issued.token, true))).toEqual(refusal(410));
    expect(await rejection(queueOf({ key: next }).decide(rotated.token, true))).toEqual(
      refusal(410),
    );
    expect(await rejection(before.decide(rotated.token, true))).toEqual(refusal(401));
    expect(await rejection(queueOf({ key: next }).decide(issued.token, true))).toEqual(
      refusal(401),
    );
    await after.decide(rotated.token, true);
    await before.decide(issued.token, true);
    expect([first.seen, second.seen]).toEqual([
      [{ approved: true, by: 'user' }, '|'],
      [{ approved: true, by: 'user' }, '|'],
    ]);
  });

  it('T12: copies the key', async () => {
    const bytes = new Uint8Array(32).fill(7);
    const desk = queueOf({ key: bytes });
    bytes.fill(0);
    const { subscription } = heard(desk);
    const { token } = await waiting(desk);
    const right = queueOf({ key: new Uint8Array(32).fill(7) });
    expect(await rejection(right.decide(token, true))).toEqual(refusal(410));
    subscription.unsubscribe();
  });
});

describe('a request without a decision', () => {
  it('T12: is denied when it expires, by the scheduler of its call', () => {
    marbles(({ scheduler, expectObservable }) => {
      const desk = queueOf({ expiresInMs: 20 });
      const d = { approved: false, reason: 'No one decided on it in time.' };
      expectObservable(asking$(desk, {}, { scheduler })).toBe('20ms (d|)', { d });
      const usual$ = asking$(queueOf(), {}, { scheduler });
      expectObservable(usual$).toBe('300000ms (d|)', { d });
      expectObservable(desk.requests$).toBe('e', { e: [] });
    });
  });

  it('T12: has expired after that, even before the timer fires', async () => {
    const desk = queueOf({ expiresInMs: 1000 });
    const scheduler = new VirtualTimeScheduler();
    const { seen } = heard(desk, {}, { scheduler });
    const { token } = await waiting(desk);
    scheduler.frame = 1000;
    expect(await rejection(desk.decide(token, true))).toEqual(refusal(410));
    expect(seen).toEqual([]);
    scheduler.flush();
    expect(seen).toEqual([{ approved: false, reason: 'No one decided on it in time.' }, '|']);
    expect(await rejection(desk.decide(token, true))).toMatchObject({
      message: 'This request has expired.',
    });
    expect(await waitingNow(desk)).toEqual([]);
  });

  it('T12: can be decided on until the last moment', async () => {
    const desk = queueOf({ expiresInMs: 1000 });
    const scheduler = new VirtualTimeScheduler();
    const { seen } = heard(desk, {}, { scheduler });
    const { token } = await waiting(desk);
    scheduler.frame = 999;
    await desk.decide(token, true);
    expect(seen).toEqual([{ approved: true, by: 'user' }, '|']);
    expect(scheduler.actions).toEqual([]);
  });
});

describe('a call whose client leaves', () => {
  it('I5: withdraws its request immediately, and leaves no timer', async () => {
    const desk = queueOf();
    const scheduler = new VirtualTimeScheduler();
    const { seen, subscription } = heard(desk, {}, { scheduler });
    const { token } = await waiting(desk);
    const lists: (readonly PendingApproval[])[] = [];
    desk.requests$.subscribe((list) => lists.push(list));
    subscription.unsubscribe();
    expect(lists.map(({ length }) => length)).toEqual([1, 0]);
    expect(scheduler.actions).toEqual([]);
    expect(await rejection(desk.decide(token, true))).toEqual(refusal(410));
    expect(seen).toEqual([]);
  });

  it('I5: queues nothing more', async () => {
    const desk = queueOf();
    const scheduler = new VirtualTimeScheduler();
    heard(desk, { toolCallId: 'left' }, { scheduler }).subscription.unsubscribe();
    expect(scheduler.actions).toEqual([]);
    const { subscription } = heard(desk, { toolCallId: 'stays' });
    await waiting(desk);
    expect((await waitingNow(desk)).map(({ toolCallId }) => toolCallId)).toEqual(['stays']);
    subscription.unsubscribe();
  });
});

describe('the requests of an approval queue', () => {
  it('T12: emit the current list to every subscriber and on every change, and never complete', async () => {
    const desk = queueOf();
    const seen: string[] = [];
    const hear = (name: string) =>
      desk.requests$.subscribe({
        next: (all) => seen.push(`${name} ${all.map(({ toolCallId }) => toolCallId).join()}`),
        error: () => seen.push(`${name} #`),
        complete: () => seen.push(`${name} |`),
      });
    hear('early');
    heard(desk, { toolCallId: 'a' });
    const a = await waiting(desk);
    heard(desk, { toolCallId: 'b' });
    const b = await waiting(desk, 2);
    hear('late');
    await desk.decide(a.token, true);
    await desk.decide(b.token, false);
    expect(seen).toEqual([
      ...['early ', 'early a', 'early a,b', 'late a,b'],
      ...['early b', 'late b', 'early ', 'late '],
    ]);
  });

  it('T12: never emit an older list after a newer one, even if a subscriber changes it', async () => {
    const desk = queueOf();
    const { subscription } = heard(desk);
    const lengths: number[] = [];
    desk.requests$.subscribe(({ length }) => {
      if (length === 1) subscription.unsubscribe();
    });
    const second = desk.requests$.subscribe(({ length }) => lengths.push(length));
    const other = heard(desk, { toolCallId: 'other' });
    await waiting(desk);
    expect(lengths).toEqual([0, 0, 1]);
    second.unsubscribe();
    other.subscription.unsubscribe();
  });
});

describe('an approval queue refuses', () => {
  it.each<[string, unknown]>([
    ['no verdict', undefined],
    ['null', null],
    ['a word', 'yes'],
    ['a number', 1],
    ['a list', [true]],
    ['no word on it', { input: {} }],
    ['what only looks like a yes', { approved: 'true' }],
    ['an inherited yes', Object.create({ approved: true })],
    ['a yes of its prototype', JSON.parse('{"__proto__":{"approved":true}}')],
    ['an input that is a text', { approved: true, input: '{}' }],
    ['an input that is a list', { approved: true, input: [] }],
    ['no input', { approved: true, input: null }],
    ['an input that is no JSON', { approved: true, input: cyclic() }],
    ['a reason that is none', { approved: false, reason: {} }],
    ['a reason without end', { approved: false, reason: 'x'.repeat(1001) }],
  ])('T12: an invalid verdict: %s', async (_, verdict) => {
    const desk = queueOf();
    const { seen } = heard(desk);
    const { token } = await waiting(desk);
    expect(await rejection(desk.decide(token, verdict as Verdict))).toMatchObject({
      ...{ code: 'invalidRequest', status: 400 },
    });
    expect(seen).toEqual([]);
    await desk.decide(token, true);
    expect(seen).toEqual([{ approved: true, by: 'user' }, '|']);
  });

  it('I20: an edit by a client, unless the application allows edits', async () => {
    const edit = (amount: number) => ({ approved: true, input: { amount } });
    const refused = { code: 'invalidRequest', status: 403 };
    const closed = approvalQueue({ key });
    const { seen } = heard(closed);
    const { token } = await waiting(closed);
    expect(await rejection(closed.decide(token, edit(6)))).toMatchObject(refused);
    expect(seen).toEqual([]);
    // The input as it was shown is no edit.
    await closed.decide(token, edit(5));
    expect(seen).toEqual([{ ...edit(5), by: 'user' }, '|']);
    const some = queueOf({ edits: ({ tool }, { amount }) => tool === 'pay' && Number(amount) < 5 });
    const other = heard(some);
    const { token: second } = await waiting(some);
    expect(await rejection(some.decide(second, edit(6)))).toMatchObject(refused);
    await some.decide(second, edit(4));
    expect(other.seen).toEqual([{ ...edit(4), by: 'user' }, '|']);
  });

  it('X15: keys that reach a prototype', async () => {
    const desk = queueOf();
    const { seen } = heard(desk);
    const { token } = await waiting(desk);
    const verdict = '{"approved":true,"input":{"__proto__":{"polluted":1},"amount":1}}';
    await desk.decide(token, JSON.parse(verdict) as Verdict);
    expect(JSON.stringify(seen[0])).toBe('{"approved":true,"input":{"amount":1},"by":"user"}');
  });

  it('T12: to decide on arguments that changed since they were shown', async () => {
    const desk = queueOf();
    const input = { amount: 5 };
    const { seen, subscription } = heard(desk, { input });
    const { token } = await waiting(desk);
    input.amount = 5000;
    expect(await rejection(desk.decide(token, true))).toEqual(refusal(409));
    expect(seen).toEqual([]);
    subscription.unsubscribe();
  });

  const secret = 'hunter2';
  it.each<[string, unknown, RegExp]>([
    ['no key', {}, /needs 'key'/],
    ['no options', undefined, /takes an object of options/],
    ['no keys', { key: [] }, /needs 'key'/],
    ['a short key', { key: secret }, /at least 32 bytes/],
    ['a key of 31 bytes', { key: new Uint8Array(31) }, /at least 32 bytes/],
    ['a short key among others', { key: [key, secret] }, /at least 32 bytes/],
    ['an empty key', { key: '' }, /at least 32 bytes/],
    ['a key of another type', { key: { secret } }, /must be a string, a Uint8Array/],
    ['keys in a list in a list', { key: [[key]] }, /must be a string, a Uint8Array/],
    ['an option that does not exist', { key, expires: 1 }, /no option 'expires'/],
    ['a time that is none', { key, expiresInMs: -1 }, /'expiresInMs' must be/],
  ])('T12: to work with %s', (_, options, message) => {
    const make = () => approvalQueue(options as ApprovalQueueOptions);
    expect(make).toThrow(expect.objectContaining({ code: 'config' }));
    expect(make).toThrow(message);
    expect(make).not.toThrow(secret);
    expect(make).not.toThrow(key);
  });

  it('X10: to show its key', async () => {
    const desk = queueOf();
    const { subscription } = heard(desk);
    const shown = await waiting(desk);
    const error = await rejection(desk.decide('x', true));
    const all = [desk, shown, error, approvalQueue].map((it) => inspect(it, { depth: 9 })).join();
    expect(all).not.toContain(key);
    expect(all).not.toContain(Buffer.from(key).toString('base64url'));
    expect(JSON.stringify(desk)).not.toContain(key);
    subscription.unsubscribe();
  });
});

function cyclic(): object {
  const it: Record<string, unknown> = {};
  it['it'] = it;
  return it;
}
