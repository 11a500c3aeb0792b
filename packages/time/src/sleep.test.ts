import { describe, expect, it } from '@jest/globals';
import { createAgent, inProcessMemory, type Model } from 'millrace';
import { createCallStore, inProcessCalls, journal } from 'millrace/journal';
import * as phases from 'millrace/phases';
import { sessions } from 'millrace/sessions';
import { layerContract, scriptedModel, text, toolCall, toolContract } from 'millrace/testing';
import { concatMap, map } from 'rxjs';
import { sleep$, type SleepEnd, sleepLayer } from './index.js';
import { sleepTool } from './sleep.js';
import { collect, createClock, createWorld, day } from './world.test-support.js';

const store = createCallStore(inProcessCalls());

const sleeper = { driver: store.driver, root: 'c', cannotSuspend: () => undefined };

for (const { name, run } of layerContract(() => sleepLayer(store))) it(name, run);

for (const { name, run } of toolContract(() => sleepTool(sleeper, {}), {
  valid: [{ seconds: 0.001 }],
  invalid: [{ days: -1 }, { until: 5 }],
})) {
  it(name, run);
}

describe('sleepLayer', () => {
  const outputOf = (input: Readonly<Record<string, unknown>>, sessionId?: string, at = 0) => {
    const { scheduler, runTo } = createClock();
    const model = scriptedModel([toolCall('sleep', input)], [text('Done.')]);
    const agent = createAgent({ model, use: [sleepLayer(store)] });
    const target =
      sessionId === undefined
        ? agent
        : sessions(agent, { memory: inProcessMemory() }).open(sessionId);
    const { seen } = collect(target.call$('Sleep.', { scheduler }));
    runTo(at);
    return { output: seen[0]?.toolCalls[0]?.output, isError: seen[0]?.toolCalls[0]?.isError };
  };

  it('waits itself for a short time, in any call', () => {
    expect(outputOf({ seconds: 30 }, undefined, 29_999).output).toBeUndefined();
    expect(outputOf({ seconds: 30 }, undefined, 30_000).output).toBe(
      'The sleep has ended, at 1970-01-01T00:00:30.000Z. It is 1970-01-01T00:00:30.000Z.',
    );
    expect(outputOf({ until: '1970-01-01T01:00:09+01:00' }, undefined, 9_000).isError).toBe(false);
  });

  it.each([
    [{}, /^Give a duration, or 'until'\. It is 1970/u],
    [{ seconds: 1, until: '2030-01-01T00:00:00Z' }, /not both/u],
    [{ until: 'tomorrow' }, /a time with an offset/u],
    [{ until: '2030-01-01T00:00:00' }, /a time with an offset/u],
    [{ days: 367 }, /The longest sleep is 31622400 seconds/u],
    [{ days: 1 }, /A sleep without a session can take up to 30 seconds/u],
  ])('shows the model what is wrong with %j', (input, message) => {
    const { output, isError } = outputOf(input);
    expect(output).toMatch(message);
    expect(isError).toBe(true);
  });

  it('fails a call that nothing could wake, and names the fix', async () => {
    const model = scriptedModel([toolCall('sleep', { days: 1 })]);
    const session = sessions(createAgent({ model, use: [sleepLayer(store)] })).open('ada');
    await expect(session.call('Sleep.')).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining('is not in the store of sleepLayer()'),
    });
  });

  it('stores the end of the sleep, as an absolute time', () => {
    const { runTo, start, store: calls } = createWorld();
    const first = start([[toolCall('sleep', { days: 3 }, 'nap')]]);
    first.ask('ada', 'Sleep.', 'c1');
    runTo(day);
    const list$ = calls.driver.list$({ isUnfinished: true });
    expect(
      collect(list$)
        .seen.flat()
        .map(({ first: it }) => it?.text),
    ).toEqual([expect.stringContaining(`"at":${3 * day}`)]);
  });

  it('refuses a value that is not a store', () => {
    expect(() => sleepLayer({} as never)).toThrow(/sleepLayer\(\) needs a store of calls/u);
    expect(() => sleepLayer(store, { holdMs: -1 })).toThrow(/holdMs/u);
  });
});

describe('sleep$', () => {
  const sleeping = (model: Model, ends: SleepEnd[]) => {
    const pause: phases.PhaseFactory = (context) => (run$) =>
      run$.pipe(
        concatMap((run) =>
          run.iteration === 0
            ? sleep$(context, 'pause', 3 * day).pipe(
                map((end) => {
                  ends.push(end);
                  return run;
                }),
              )
            : [run],
        ),
      );
    return createAgent({ model, use: [phases.insertBefore(phases.reasoning, pause)] });
  };

  it('S6: waits for the rest only in a resumed call', () => {
    const { scheduler, runTo } = createClock();
    const calls = createCallStore(
      inProcessCalls(() => scheduler.now()),
      { scheduler },
    );
    const durable = journal(calls);
    const ends: SleepEnd[] = [];
    const limits = { timeouts: { callMs: 20 * day } };
    const agent = sleeping(scriptedModel([text('Awake.')]), ends);
    const first = collect(agent.with(durable).call$('Sleep.', { callId: 'c', scheduler, limits }));
    runTo(day);
    first.stop();
    runTo(2 * day);
    const { seen } = collect(durable.resume$(agent, 'c', { scheduler, limits }));
    runTo(3 * day - 1);
    expect(seen).toEqual([]);
    runTo(3 * day);
    expect(seen).toMatchObject([{ text: 'Awake.' }]);
    expect(ends).toEqual(['slept']);
  });

  it('ends early if the call is interrupted, and frees its timer', () => {
    const { scheduler, runTo } = createClock();
    const ends: SleepEnd[] = [];
    const agent = sleeping(scriptedModel([text('Awake.')]), ends);
    const session = sessions(agent).open('ada');
    const limits = { timeouts: { callMs: 20 * day } };
    const { seen } = collect(session.call$('Sleep.', { scheduler, limits }));
    runTo(day);
    session.interrupt('Enough.');
    runTo(day + 1);
    expect(seen).toMatchObject([{ reason: 'interrupted' }]);
    expect(scheduler.actions).toEqual([]);
  });
});
