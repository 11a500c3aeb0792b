import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { open } from '../adapters/floor.js';
import { type Mock, startMock } from '../mock/start-mock.js';
import { abortJob } from './abort-job.js';
import { atOnceJob } from './at-once-job.js';
import { callsJob } from './calls-job.js';
import { idleJob } from './idle-job.js';
import type { OpenHere } from './job.js';
import { jobs } from './jobs.js';
import { slowJob } from './slow-job.js';
import { storeJob } from './store-job.js';
import { storeStartJob } from './store-start-job.js';

describe('what a process does that is measured', () => {
  let mock: Mock;
  let openHere: OpenHere;
  beforeAll(async () => {
    mock = await startMock();
    openHere = () => open({ baseURL: mock.baseURL });
  });
  afterAll(() => mock.close());

  /** No form that is pulled, and no conversations. */
  const openPlain: OpenHere = () => ({ call: () => Promise.resolve('') });

  it('makes so many calls of each script, and measures young and old ones', async () => {
    const made: string[] = [];
    const adapter = await openHere();
    const openCounted: OpenHere = () => ({
      call: (script, options) => {
        made.push(script);
        return adapter.call(script, options);
      },
    });
    const calls = { before: 1, young: 2, between: 3, old: 2 };
    const options = { scripts: ['0x0-3', '1x2-3'], ...calls };
    const result = await callsJob.run(openCounted, options);
    expect(made.map((script) => script[0]).join('')).toBe('0000000011111111');
    expect(callsJob.isResult(result)).toBe(true);
  });

  it('measures exactly the young and the old calls', async () => {
    let made = 0;
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => made ** 2);
    const openClocked: OpenHere = () => ({
      call: (_, { onDelta } = {}) => {
        made += 1;
        onDelta?.('the');
        return Promise.resolve('the');
      },
    });
    const calls = { before: 1, young: 2, between: 3, old: 4 };
    const { costs } = await callsJob.run(openClocked, { scripts: ['0x0-1'], ...calls });
    clock.mockRestore();
    expect(costs[0]?.young.wallMs).toBe((3 ** 2 - 1 ** 2) / 2);
    expect(costs[0]?.old.wallMs).toBe((10 ** 2 - 6 ** 2) / 4);
  });

  it('aborts calls, each in the middle', async () => {
    const options = { script: '0x0-2000-2', times: 2, afterDeltas: 3 };
    const { aborts, endedAt } = await abortJob.run(openHere, options);
    expect(aborts).toHaveLength(2);
    for (const { abortedAt, settledAt } of aborts) {
      expect(settledAt).toBeGreaterThanOrEqual(abortedAt);
      expect(settledAt).toBeLessThan(endedAt);
    }
    const short = abortJob.run(openHere, { ...options, script: '0x0-2' });
    await expect(short).rejects.toThrow(/ended before it was aborted/);
  });

  it('measures nothing if an adapter has no such form', async () => {
    const slow = { script: '0x0-3', warmUpScript: '0x0-3', waitMs: 1 };
    expect(await slowJob.run(openPlain, slow)).toMatchObject({ isPulled: false });
    const idle = { script: '0x0-3', sessions: 2, warmUp: 1 };
    expect(await idleJob.run(openPlain, idle)).toMatchObject({ isHeld: false });
  });

  it('has a name, and takes no other options', () => {
    const all = [callsJob, atOnceJob, slowJob, abortJob, idleJob, storeJob, storeStartJob];
    for (const { name } of all) {
      expect(() => jobs.get(name)?.(openHere, { script: 5 })).toThrow(/has other options/);
    }
  });
});
