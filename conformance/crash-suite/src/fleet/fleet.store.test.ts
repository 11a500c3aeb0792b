import { describe, expect, it } from '@jest/globals';
import { runFleet } from './run-fleet.js';

// Processes may have to wait for a busy machine.
const limitMs = 240_000;

describe('a fleet of workers', () => {
  it(
    'S6: loses no call, no effect and no order, while its processes are killed, stopped and drained',
    async () => {
      const { verdict, kills } = await runFleet({
        seed: 1,
        calls: 40,
        processes: 3,
        disturbMs: 12_000,
        limitMs: limitMs - 60_000,
      });
      expect(verdict.wrongs).toEqual([]);
      expect(verdict).toMatchObject({ calls: 40, lost: 0, doubled: 0 });
      expect(kills).toBeGreaterThan(0);
    },
    limitMs,
  );
});
