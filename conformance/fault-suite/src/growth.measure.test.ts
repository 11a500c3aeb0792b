import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type FaultServer, startFaultServer, wires } from '@millrace/fault-server';
import { measureStream } from './long-stream.js';

let server: FaultServer;

beforeAll(async () => {
  server = await startFaultServer();
});
afterAll(() => server.close());

describe('a long answer', () => {
  it.each(wires)(
    'X6: over %s takes linear time and bounded memory',
    async (wire) => {
      await measureStream(server, wire, 2_000);
      const ratios: number[] = [];
      for (let round = 0; round < 3; round += 1) {
        const once = await measureStream(server, wire, 10_000);
        const twice = await measureStream(server, wire, 20_000);
        ratios.push(twice.ms / once.ms);
        expect(twice.grownMb).toBeLessThan(50);
      }
      // The law is 2, and 4 would be quadratic; the machine may be busy with other things.
      expect(Math.min(...ratios)).toBeLessThan(3);
    },
    60_000,
  );
});
