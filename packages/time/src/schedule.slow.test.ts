import { describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError, type Model, tool } from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import { inProcessSessions, keepSessions } from 'millrace/sessions';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import fc from 'fast-check';
import { concatMap, delay, map, NEVER, of, throwError, timer } from 'rxjs';
import { schedule, type Firing, type ScheduleOptions } from './index.js';
import { collect, createClock, day } from './world.test-support.js';

const hour = 3_600_000;

const createWorld = () => {
  const clock = createClock();
  const { scheduler } = clock;
  const store = createCallStore(
    inProcessCalls(() => scheduler.now()),
    { scheduler },
  );
  const fired: string[] = [];
  /** A process with a schedule that notes its times. */
  const start = (
    options: ScheduleOptions = {},
    make = (_firing: Firing) => of<unknown>('made'),
    cron = '0 * * * *',
  ) =>
    collect(
      schedule(
        (firing) => {
          fired.push(firing.callId);
          return make(firing);
        },
        cron,
        'Look.',
        { name: 'look', timeZone: 'UTC', store, scheduler, ...options },
      ),
    );
  return { ...clock, store, fired, start };
};

const at = (...hours: readonly number[]) =>
  hours.map((it) => `look:${new Date(it * hour).toISOString()}`);

describe('schedule', () => {
  it('makes a call of an agent at each time, and does not end with an error of one', () => {
    const { scheduler, runTo } = createClock();
    const model = scriptedModel([text('One.')], throwing, [text('Three.')]);
    const agent = createAgent({ model });
    const { seen } = collect(schedule(agent, '0 9 * * *', 'News?', { timeZone: 'UTC', scheduler }));
    runTo(2 * day + 10 * hour);
    expect(seen).toMatchObject([
      { type: 'ended', at: 9 * hour, value: { text: 'One.' } },
      { type: 'failed', at: day + 9 * hour, error: { code: 'auth' } },
      { type: 'ended', at: 2 * day + 9 * hour, value: { text: 'Three.' } },
    ]);
  });

  it('is cold, starts nothing before it is subscribed, and leaves no timer after it is unsubscribed', () => {
    const { scheduler, runTo, fired, start } = createWorld();
    schedule(() => of(fired.push('?')), '* * * * *', 'Look.', { scheduler });
    const { stop } = start();
    runTo(2 * hour);
    stop();
    runTo(9 * hour);
    expect(fired).toEqual(at(1, 2));
    expect(scheduler.actions).toEqual([]);
  });

  it('completes after the last time', () => {
    const { runTo, start } = createWorld();
    const { seen, state } = start({}, undefined, '0 0 5 1 1 * 1970');
    runTo(5 * hour - 1);
    expect(state.isComplete).toBe(false);
    runTo(6 * hour);
    expect(seen).toMatchObject([{ type: 'ended', value: 'made' }]);
    expect(state.isComplete).toBe(true);
  });

  it.each([
    ['once', [1, 2, 8]],
    ['all', [1, 2, 3, 4, 5, 6, 7, 8]],
    ['skip', [1, 8]],
  ] as const)('makes up for missed times: %s', (missed, expected) => {
    const { runTo, fired, start } = createWorld();
    const first = start({ missed });
    runTo(1.5 * hour);
    first.stop();
    runTo(7.5 * hour);
    const { seen } = start({ missed });
    runTo(8.5 * hour);
    expect(fired).toEqual(at(...expected));
    expect(seen.some(({ type }) => type === 'skipped')).toBe(missed === 'skip');
  });

  it('makes no call at the start of a new schedule', () => {
    const { runTo, fired, start } = createWorld();
    runTo(1.5 * hour);
    start();
    runTo(1.9 * hour);
    expect(fired).toEqual([]);
  });

  it('follows a new expression, or another zone, from the next time on', () => {
    const { runTo, fired, start } = createWorld();
    start({}, undefined, '0 9 * * *').stop();
    const { stop } = start({}, undefined, '0 2 * * *');
    runTo(10 * hour);
    stop();
    start({ timeZone: 'Asia/Tokyo' }, undefined, '0 2 * * *');
    runTo(18 * hour);
    expect(fired).toEqual(at(2, 17));
  });

  it('still makes the call of a time that was missed, if the expression is a new one', () => {
    const { runTo, fired, start, store } = createWorld();
    start({}, undefined, '0 1 * * *').stop();
    start({ name: 'other' }, undefined, '0 2 * * *').stop();
    runTo(1.5 * hour);
    start({}, undefined, '0 3 * * *');
    runTo(10 * hour);
    expect(fired).toEqual(at(1, 3));
    // The times of another schedule are its own.
    const { seen } = collect(store.driver.list$({ isUnfinished: true }));
    expect(seen.flat().map(({ callId }) => callId)).toContain(
      'schedule:other:1970-01-01T02:00:00.000Z',
    );
  });

  it('leaves no time of an expression that was replaced, and has it again if that comes back', () => {
    const { runTo, fired, start, store } = createWorld();
    const ids = () => {
      const { seen } = collect(store.driver.list$());
      return seen.flat().map(({ callId }) => callId.slice('schedule:'.length));
    };
    start({}, undefined, '0 9 * * *').stop();
    start({}, undefined, '0 2 * * *').stop();
    expect(ids()).toEqual(at(2));
    const { seen } = start({}, undefined, '0 9 * * *');
    expect(ids()).toEqual(at(9));
    runTo(30 * hour);
    expect(fired).toEqual(at(9));
    expect(seen.map(({ type }) => type)).toEqual(['ended']);
  });

  it('leaves the times of a process with another expression, which was started later', () => {
    const { runTo, fired, start } = createWorld();
    const { seen } = start({ pollMs: 60_000 }, undefined, '0 9 * * *');
    runTo(hour);
    const { stop } = start({ pollMs: 60_000 }, undefined, '0 2 * * *');
    runTo(1.5 * hour);
    stop();
    runTo(10 * hour);
    expect(fired).toEqual(at(2, 9));
    expect(seen.map(({ type }) => type)).toEqual(['ended', 'ended']);
  });

  it('waits for a call that takes longer, and counts what it missed meanwhile as one', () => {
    const { runTo, fired, scheduler, start } = createWorld();
    start({}, () => of('made').pipe(delay(2.5 * hour, scheduler)));
    runTo(6.9 * hour);
    expect(fired).toEqual(at(1, 2, 4));
    const other = createWorld();
    other.start({ parallel: 3 }, () => of('made').pipe(delay(2.5 * hour, other.scheduler)));
    other.runTo(4.5 * hour);
    expect(other.fired).toEqual(at(1, 2, 3, 4));
  });

  it('asks an engine once, and takes its refusal of a second call as done', () => {
    const { runTo, start } = createWorld();
    const taken = new MillraceError('conflict', 'There is a call of this id.');
    const { seen } = start({}, () => throwError(() => taken));
    runTo(1.5 * hour);
    expect(seen).toMatchObject([{ type: 'ended', value: undefined }]);
  });

  it('tries a call again only if maxAttempts allows it', () => {
    const down = new MillraceError('connection', 'Down.', { retryable: true });
    const failing = (maxAttempts: number) => {
      const { runTo, start } = createWorld();
      const { seen } = start({ maxAttempts }, () => throwError(() => down));
      runTo(1.5 * hour);
      return seen.map((it) => (it.type === 'failed' ? it.retryMs : it));
    };
    expect(failing(1)).toEqual([undefined]);
    expect(failing(3)).toEqual([1_000, 2_000, undefined]);
  });

  it('counts only failures of the call, and tries again after the delay that it reports', () => {
    const { runTo, start, scheduler } = createWorld();
    const codes = ['busy', 'store', 'conflict', 'connection', 'connection'] as const;
    const tried: number[] = [];
    const { seen } = start({ maxAttempts: 3, pollMs: hour }, () =>
      timer(100, scheduler).pipe(
        map(() => {
          const code = codes[tried.push(scheduler.now() - hour) - 1];
          if (code !== undefined) throw new MillraceError(code, 'Down.', { retryable: true });
          return 'made';
        }),
      ),
    );
    runTo(2 * hour - 1);
    expect(seen.map((it) => (it.type === 'failed' ? it.retryMs : it.type))).toEqual([
      ...[1_000, 2_000, 4_000, 8_000, 16_000, 'ended'],
    ]);
    expect(tried).toEqual([100, 1_200, 3_300, 7_400, 15_500, 31_600]);
  });

  it('makes its own calls and removes its own times only, for any name', () => {
    const part = fc.constantFrom(
      '',
      'a',
      ':',
      '/',
      'news',
      'é',
      'e\u0301',
      '\ud800',
      '1970-01-01T01',
    );
    const name = fc
      .array(part, { maxLength: 4 })
      .map((parts) => parts.join(''))
      .filter((it) => !it.startsWith('schedule:'));
    fc.assert(
      fc.property(name, name, (one, other) => {
        fc.pre(one !== other);
        const { runTo, fired, start } = createWorld();
        const make = () => of('made');
        start({ name: one, pollMs: hour }, make, '0 2 * * *');
        start({ name: other, pollMs: hour }, make, '0 3 * * *').stop();
        runTo(2.5 * hour);
        start({ name: other, pollMs: hour }, make, '0 3 * * *');
        runTo(20 * hour);
        const time = (hours: number) => new Date(hours * hour).toISOString();
        expect(fired).toEqual([`${one}:${time(2)}`, `${other}:${time(3)}`]);
      }),
      {
        examples: [
          ['news', 'news:daily'],
          ['news:daily', 'news'],
          ['', ':'],
          ['schedule', ''],
        ],
      },
    );
  });

  it('S6: resumes a call that its process left, without a second tool call', () => {
    const { scheduler, runTo, store } = createWorld();
    const ran: string[] = [];
    const note = tool({ name: 'note', description: 'Notes.', run: () => `${ran.push('note')}` });
    const start = (model: Model) =>
      collect(
        schedule(createAgent({ model, tools: [note] }), '0 * * * *', 'Note.', {
          ...{ name: 'note', timeZone: 'UTC', scheduler, journal: journal(store) },
        }),
      );
    const hanging: Model = {
      name: 'hanging',
      stream$: ({ messages }) =>
        messages.at(-1)?.role === 'tool' ? NEVER : of(toolCall('note'), finish()),
    };
    const first = start(hanging);
    runTo(1.1 * hour);
    first.stop();
    const { seen } = start(scriptedModel([text('Noted.')]));
    runTo(1.9 * hour);
    expect(seen).toMatchObject([{ type: 'ended', at: hour, value: { text: 'Noted.' } }]);
    expect(ran).toHaveLength(1);
  });

  it('continues the conversation of a kept session', () => {
    const { scheduler, runTo, store } = createWorld();
    const model = scriptedModel([text('One.')], [text('Two.')]);
    const options = { journal: journal(store), scheduler };
    const users = keepSessions(createAgent({ model }), inProcessSessions(), options);
    const { seen } = collect(
      users
        .open$('ada')
        .pipe(
          concatMap((ada) => schedule(ada, '0 * * * *', 'Next?', { name: 'a', store, scheduler })),
        ),
    );
    runTo(2.5 * hour);
    expect(seen).toMatchObject([{ value: { text: 'One.' } }, { value: { text: 'Two.' } }]);
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'user'],
    ]);
  });

  it('S6: makes one call for each time, whenever processes start and end', () => {
    const process = fc.record({
      from: fc.integer({ min: 0, max: 600 }),
      minutes: fc.integer({ min: 1, max: 300 }),
    });
    fc.assert(
      fc.property(fc.array(process, { maxLength: 6 }), (processes) => {
        const { runTo, scheduler, fired, start } = createWorld();
        for (const { from, minutes } of processes) {
          scheduler.schedule(() => {
            const { stop } = start({ missed: 'all' });
            scheduler.schedule(stop, minutes * 60_000);
          }, from * 60_000);
        }
        runTo(1_000 * 60_000);
        start({ missed: 'all' });
        runTo(20.5 * hour);
        const first = Math.floor(Math.min(1_000, ...processes.map(({ from }) => from)) / 60) + 1;
        const hours = Array.from({ length: 20 - first + 1 }, (_, index) => first + index);
        expect(fired).toEqual(at(...hours));
      }),
    );
  });

  it('refuses options that are not valid, and names the fix', () => {
    const { store } = createWorld();
    const make = () => of(1);
    const refused = (work: () => unknown, message: RegExp): void =>
      expect(work).toThrow(
        expect.objectContaining({ code: 'config', message: expect.stringMatching(message) }),
      );
    refused(() => schedule(make, 'soon', 'Look.'), /cron expression 'soon'/u);
    refused(() => schedule(make, '@daily', 'Look.', { store }), /'name'/u);
    refused(() => schedule(make, '@daily', '', {}), /'message'/u);
    refused(() => schedule(make, '@daily', 'Look.', { name: 'schedule:a', store }), /'name'/u);
    refused(() => schedule({} as never, '@daily', 'Look.'), /'target'/u);
    refused(() => schedule(make, '@daily', 'Look.', { pollMs: 1 }), /'pollMs'/u);
    refused(() => schedule(make, '@daily', 'Look.', { missed: 'never' as never }), /'missed'/u);
  });
});

const throwing = throwError(() => new MillraceError('auth', 'No key.'));
