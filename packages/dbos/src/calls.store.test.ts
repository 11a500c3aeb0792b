import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { attach$, journal } from 'millrace/journal';
import { filter, firstValueFrom, lastValueFrom, map, take, toArray } from 'rxjs';
import {
  clerk,
  done,
  type Engines,
  over,
  replyText,
  startEngines,
  until,
} from './engine.test-support.js';
import type { DbosEngine } from './engine.js';
import { openDbos } from './open-dbos.js';
import type { StartOptions } from './order.js';

let engines: Engines;
let engine: DbosEngine;
beforeAll(async () => {
  engines = await startEngines();
  engine = engines.open();
  engines.keep(engine.work$([clerk(), { agent: clerk('narrow'), maxRunning: 1 }], { pollMs: 20 }));
});
afterAll(() => engines.stop());

const start = (...call: Parameters<DbosEngine['start$']>): Promise<string> =>
  firstValueFrom(engine.start$(...call));

const errorOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

const suspended = async (callId: string, options: StartOptions = {}) => {
  await start('clerk', 'use sign', { callId, sessionId: callId, ...options });
  const { reason, suspensions = [] } = await firstValueFrom(engine.reply$(callId));
  expect(reason).toBe('suspended');
  const results = suspensions.map(({ toolCall }) => [toolCall.id, 'signed'] as const);
  return Object.fromEntries(results);
};

describe('start$', () => {
  it('queues a call, whose events and reply any process can follow', async () => {
    const callId = await start(clerk(), 'use look');
    const events = await lastValueFrom(engine.attach$(callId).pipe(toArray()));
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect([events[0]?.type, events.at(-1)?.type]).toEqual(['preCall', 'postCall']);
    expect(await replyText(engine, callId)).toBe('use look | seen');
    const late = engine.attach$(callId, { afterSeq: events.length - 1 });
    expect(
      await lastValueFrom(
        late.pipe(
          map(({ type }) => type),
          toArray(),
        ),
      ),
    ).toEqual(['postCall']);
    await expect(firstValueFrom(engine.find$(callId))).resolves.toMatchObject({ agent: 'clerk' });
  });

  it('S1: runs the calls of a session one by one, in the order of their starts, with its memory', async () => {
    for (const word of ['one', 'two', 'three', 'four']) {
      await start('clerk', word, { sessionId: 'ordered', callId: `o-${word}` });
    }
    expect(await replyText(engine, 'o-four')).toBe('one | two | three | four');
    expect(await replyText(engine, 'o-two')).toBe('one | two');
  });

  it('runs the calls of an agent at the same time, unless its limit forbids that', async () => {
    for (const name of ['clerk', 'narrow']) {
      await start(name, 'forever', { callId: `${name}-1` });
      await until(engine, `${name}-1`, 'preActing');
      await start(name, 'quick', { callId: `${name}-2` });
    }
    expect(await replyText(engine, 'clerk-2')).toBe('quick');
    expect(await firstValueFrom(engine.find$('narrow-2'))).toMatchObject({ status: 'queued' });
    await done(engine.interrupt$('clerk-1'));
    await done(engine.interrupt$('narrow-1'));
    expect(await replyText(engine, 'narrow-2')).toBe('quick');
  });

  it('starts a call later', async () => {
    await start('clerk', 'later', { callId: 'delayed', delayMs: 500 });
    expect(await firstValueFrom(engine.find$('delayed'))).toMatchObject({ status: 'delayed' });
    expect(await replyText(engine, 'delayed')).toBe('later');
  });

  it('refuses a second call of the same id, and one whose options JSON cannot express', async () => {
    await start('clerk', 'once', { callId: 'unique' });
    expect(await errorOf(start('clerk', 'twice', { callId: 'unique' }))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining("attach$('unique')"),
    });
    const large = JSON.parse('{"metadata":{}}');
    large.metadata.a = 1n;
    expect(await errorOf(start('clerk', 'x', large))).toMatchObject({ code: 'config' });
    expect(await replyText(engine, 'unique')).toBe('once');
    const misuses: readonly (() => unknown)[] = [
      () => engine.start$('clerk', 'x', { callId: ' ' }),
      () => engine.start$('clerk', 'x', { callId: 'a\0b' }),
      () => engine.start$('clerk', 'x', JSON.parse('{"tools":[]}')),
      () => engine.start$('clerk', 'x', JSON.parse('{"delay":3}')),
      () => engine.start$('clerk', 'x', { delayMs: -1 }),
      () => engine.start$('clerk', 'x', { callId: 'a~2' }),
      () => engine.start$('', 'x'),
      () => engine.steer$('x', ' '),
      () => engine.work$([]),
      () => engine.work$([clerk(), clerk()]),
      () => engine.work$([{ agent: clerk(), concurrency: 0 }]),
    ];
    for (const misuse of misuses)
      expect(misuse).toThrow(expect.objectContaining({ code: 'config' }));
  });

  it('passes options and metadata to the call', async () => {
    const metadata = { user: 'ada' };
    const callId = await start('clerk', 'hi', { metadata, limits: { maxIterations: 3 } });
    await replyText(engine, callId);
    const { driver } = engine.store.calls;
    const [records = []] = await lastValueFrom(driver.read$(callId).pipe(take(1), toArray()));
    const begun: unknown = JSON.parse(records[0]?.text ?? '');
    expect(begun).toMatchObject({ options: { metadata, limits: { maxIterations: 3 } } });
  });
});

describe('messages to a call', () => {
  it('I6: interrupts a running call, and one that waits', async () => {
    await start('clerk', 'forever', { callId: 'runs', sessionId: 'busy' });
    await start('clerk', 'behind', { callId: 'waits', sessionId: 'busy' });
    await done(engine.interrupt$('waits', 'Not now.'));
    await until(engine, 'runs', 'preActing');
    await done(engine.interrupt$('runs', 'Enough.'));
    expect(await replyText(engine, 'runs')).toBe('Enough.');
    expect(await replyText(engine, 'waits')).toBe('Not now.');
  });

  it('adds messages to a running call of a session, in order', async () => {
    await start('clerk', 'forever', { callId: 'steered', sessionId: 'steered' });
    await until(engine, 'steered', 'preActing');
    await done(engine.steer$('steered', 'forever'));
    await done(engine.steer$('steered', 'stop'));
    expect(await replyText(engine, 'steered')).toMatch(/^forever \| forever \| stop \| rested/);
    await over(engine, 'steered');
    expect(await errorOf(done(engine.steer$('steered', 'more')))).toMatchObject({
      code: 'invalidResume',
    });
    const plain = await start('clerk', 'forever');
    expect(await errorOf(done(engine.steer$(plain, 'more')))).toMatchObject({
      code: 'invalidRequest',
      message: expect.stringContaining("'sessionId'"),
    });
    await done(engine.interrupt$(plain));
  });

  it('decides on tool calls', async () => {
    for (const [callId, verdict] of [
      ['yes', true],
      ['no', { approved: false, reason: 'Too much.' }],
    ] as const) {
      await start('clerk', 'use pay', { callId });
      const asked = await until(engine, callId, 'approvalRequested');
      await done(engine.decide$(asked, verdict));
    }
    expect(await replyText(engine, 'yes')).toBe('use pay | paid');
    expect(await replyText(engine, 'no')).toContain('Too much.');
  });

  it('refuses messages to unknown calls', async () => {
    for (const work$ of [
      engine.interrupt$('nobody'),
      engine.steer$('nobody', 'x'),
      engine.abort$('nobody'),
      engine.answer$('nobody', { a: 1 }),
      engine.resume$('nobody'),
      engine.find$('nobody'),
      engine.attach$('nobody'),
      engine.reply$('nobody'),
    ]) {
      expect(await errorOf(done(work$))).toMatchObject({ code: 'invalidResume' });
    }
  });
});

describe('suspended calls', () => {
  it('continue with their results, before the calls that wait after them', async () => {
    const results = await suspended('lease');
    await start('clerk', 'behind', { callId: 'lease-behind', sessionId: 'lease' });
    await over(engine, 'lease');
    await start('clerk', 'last', { callId: 'lease-last', sessionId: 'lease' });
    for (const waiting of ['lease-behind', 'lease-last']) {
      expect(await firstValueFrom(engine.find$(waiting))).toMatchObject({ status: 'queued' });
    }
    const next = await firstValueFrom(engine.answer$('lease', results));
    expect(next).toBe('lease~2');
    expect(await replyText(engine, next)).toBe('use sign | signed');
    expect(await replyText(engine, 'lease-last')).toBe('use sign | behind | last | signed');
  });

  it('take one answer', async () => {
    const results = await suspended('one');
    // The answer may come before the engine has noted that the call is suspended.
    await firstValueFrom(engine.answer$('one', results));
    expect(await errorOf(firstValueFrom(engine.answer$('one', results)))).toMatchObject({
      code: 'conflict',
    });
    expect(await replyText(engine, 'one~2')).toBe('use sign | signed');
    expect(await replyText(engine, await start('clerk', 'on', { sessionId: 'one' }))).toContain(
      'on',
    );
  });

  it('continue without an answer when their time is over', async () => {
    const results = await suspended('late', { answerWithinMs: 300 });
    await start('clerk', 'behind', { callId: 'late-behind', sessionId: 'late' });
    expect(await replyText(engine, 'late-behind')).toContain('There was no answer in time.');
    expect(await errorOf(firstValueFrom(engine.answer$('late', results)))).toMatchObject({
      code: 'conflict',
    });
  });

  it('refuse other results than those that they wait for', async () => {
    const results = await suspended('exact');
    for (const wrong of [{ other: 'x' }, {}, { ...results, other: 'x' }]) {
      expect(await errorOf(firstValueFrom(engine.answer$('exact', wrong)))).toMatchObject({
        code: 'invalidResume',
        message: expect.stringContaining(`waits for the results of ${Object.keys(results)[0]}`),
      });
    }
    await firstValueFrom(engine.answer$('exact', results));
    expect(await replyText(engine, 'exact~2')).toBe('use sign | signed');
    expect(await errorOf(firstValueFrom(engine.answer$('exact~2', results)))).toMatchObject({
      code: 'invalidResume',
      message: expect.stringContaining('is not suspended'),
    });
  });

  it('let delayed calls of their session wait, too', async () => {
    const results = await suspended('slow');
    await start('clerk', 'soon', { callId: 'slow-soon', sessionId: 'slow', delayMs: 200 });
    await over(engine, 'slow');
    await start('clerk', 'later', { callId: 'slow-later', sessionId: 'slow', delayMs: 200 });
    // A call that is delayed by more is due after these two would have been.
    await replyText(engine, await start('clerk', 'x', { delayMs: 1_500 }));
    expect(await firstValueFrom(engine.find$('slow-soon'))).toMatchObject({ status: 'queued' });
    await firstValueFrom(engine.answer$('slow', results));
    expect(await replyText(engine, 'slow-later')).toContain('later');
    expect(await replyText(engine, 'slow-soon')).toContain('soon');
  });

  it('need a session', async () => {
    const callId = await start('clerk', 'use sign');
    await firstValueFrom(engine.reply$(callId));
    expect(await errorOf(firstValueFrom(engine.answer$(callId, { a: 1 })))).toMatchObject({
      code: 'invalidRequest',
    });
  });
});

describe('calls that stop', () => {
  it('gives the error of a failed call, and continues it', async () => {
    const callId = await start('clerk', 'fail', { sessionId: 'failing' });
    expect(await errorOf(firstValueFrom(engine.reply$(callId)))).toMatchObject({
      name: 'MillraceError',
      message: expect.stringContaining('The model is broken.'),
    });
    await over(engine, callId);
    const status$ = engine.find$(callId);
    expect(await firstValueFrom(status$)).toMatchObject({ status: 'failed' });
    // Fails again.
    const events = lastValueFrom(
      engine.attach$(callId).pipe(
        filter(({ type }) => type === 'error'),
        toArray(),
      ),
    );
    await firstValueFrom(engine.resume$(callId));
    expect((await lastValueFrom(engine.attach$(callId).pipe(toArray()))).at(-1)?.type).toBe(
      'error',
    );
    expect((await events).length).toBeGreaterThanOrEqual(1);
    // The session goes on.
    expect(
      await replyText(engine, await start('clerk', 'next', { sessionId: 'failing' })),
    ).toContain('next');
  });

  it('I5: aborts a call, which can be continued', async () => {
    const callId = await start('clerk', 'forever', { callId: 'aborted', sessionId: 'aborted' });
    await until(engine, callId, 'preActing');
    const seen = lastValueFrom(engine.attach$(callId).pipe(toArray()));
    await done(engine.abort$(callId));
    expect(await errorOf(firstValueFrom(engine.reply$(callId)))).toMatchObject({ code: 'aborted' });
    expect((await seen).at(-1)?.type).toBe('error');
    await firstValueFrom(engine.resume$(callId));
    await done(engine.steer$(callId, 'stop'));
    expect(await replyText(engine, callId)).toContain('stop');
  });

  it('reports why a call failed that no worker could begin', async () => {
    const broken = await start('clerk', JSON.parse('{"role":"nobody"}'));
    expect(await errorOf(firstValueFrom(engine.reply$(broken)))).toMatchObject({
      message: expect.stringContaining('input'),
    });
  });

  it('forks a call', async () => {
    const callId = await start('clerk', 'use look');
    await replyText(engine, callId);
    const fork = await firstValueFrom(engine.fork$(callId, { at: { iteration: 2 } }));
    expect(await replyText(engine, fork)).toBe('use look | seen');
    expect(fork).not.toBe(callId);
  });
});

describe('the store of an engine', () => {
  it('follows calls that it did not run, and prunes those that ended', async () => {
    const durable = journal(engine.store.calls);
    await clerk().with(durable).call('by hand', { callId: 'by-hand' });
    const results = await suspended('waits-on');
    await over(engine, 'waits-on');
    expect(await replyText(engine, 'by-hand')).toBe('by hand');
    const removed = await lastValueFrom(engine.prune$({ olderThanMs: 0 }).pipe(toArray()));
    expect(removed).toEqual(expect.arrayContaining(['unique', 'yes', 'lease~2']));
    expect(removed).not.toContain('waits-on');
    await firstValueFrom(engine.answer$('waits-on', results));
    expect(await replyText(engine, 'waits-on~2')).toBe('use sign | signed');
    expect(await errorOf(firstValueFrom(engine.find$('unique')))).toMatchObject({
      code: 'invalidResume',
    });
    expect(await errorOf(firstValueFrom(attach$(engine.store.calls, 'unique')))).toMatchObject({
      code: 'invalidResume',
    });
  });
});

describe('an engine', () => {
  it('works again after its end, beside engines of other names, and not twice in a process', async () => {
    const other = engines.open({ name: 'other' });
    expect(await errorOf(firstValueFrom(other.work$([clerk()])))).toMatchObject({ code: 'config' });
    await done(engine.close$());
    for (const word of ['one', 'two']) {
      const working = other.work$([clerk()], { pollMs: 20 }).subscribe();
      const callId = await firstValueFrom(other.start$('clerk', word));
      expect(await replyText(other, callId)).toBe(word);
      working.unsubscribe();
    }
    await done(other.close$());
    await done(other.close$());
    expect(await errorOf(firstValueFrom(other.find$('x')))).toMatchObject({
      code: 'store',
      message: expect.stringContaining('closed'),
    });
  });

  it('names itself in the error for a bad address, without its password', () => {
    expect(() => openDbos('http://user:secret@host')).toThrow(/openDbos\(\) needs the URL/);
    expect(() => openDbos('http://user:secret@host')).not.toThrow(/secret/);
  });
});
