import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { inProcessCalls } from 'millrace/journal';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, map, toArray } from 'rxjs';
import { storeJob } from '../jobs/store-job.js';
import { storeStartJob } from '../jobs/store-start-job.js';
import { loopAgent, stepsOf } from './loop-agent.js';
import { timeAppends } from './time-appends.js';
import { timeFollowing } from './time-following.js';

const notOpened = () => {
  throw new Error('No adapter is asked.');
};

describe('a journal that is measured', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'bench-journal-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('has as many steps as it is said to have', async () => {
    for (const script of ['0x0-1', '3x2-1']) {
      const calls = inProcessCalls();
      await loopAgent(script, calls).call('?', { callId: 'c' });
      const steps = await lastValueFrom(
        calls.read$('c', { kind: 'step' }).pipe(
          map(({ length }) => length),
          toArray(),
        ),
      );
      expect(steps).toEqual([stepsOf(script)]);
    }
  });

  it('reports how long each step took, and when each event could be read', async () => {
    const calls = inProcessCalls();
    expect(await timeAppends(calls, 'appends', 3)).toHaveLength(3);
    const { events, lagsMs } = await timeFollowing(calls, 'followed', '0x0-20');
    expect(events).toBeGreaterThan(20);
    expect(lagsMs).toHaveLength(events);
    expect(lagsMs.every(Number.isFinite)).toBe(true);
  });

  it('is measured in files, and without any', async () => {
    const place = { folder, url: '' };
    const { ms } = await storeStartJob.run(notOpened, { ...place, store: 'files' });
    expect(ms).toBeGreaterThan(0);
    const asked = {
      ...place,
      script: '1x1-1',
      warmUp: 1,
      calls: 2,
      sideBySide: 2,
      appends: 2,
      longScript: '1x1-1',
      resumes: 1,
      burstScript: '0x0-3',
      pacedScript: '0x0-2',
    };
    for (const store of ['none', 'files']) {
      const cost = await storeJob.run(notOpened, { ...asked, store });
      expect(storeJob.isResult(cost)).toBe(true);
      expect(cost.bytesOfSteps > 0).toBe(store === 'files');
    }
    const unknown = storeJob.run(notOpened, { ...asked, store: 'paper' });
    await expect(unknown).rejects.toThrow(/no store 'paper'/);
  });
});
