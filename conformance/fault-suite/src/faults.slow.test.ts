import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { faults, type FaultServer, startFaultServer } from '@millrace/fault-server';
import { playAll } from './play-all.js';
import type { Played } from './play-fault.js';

// Real sockets and processes may have to wait for a busy machine.
jest.setTimeout(180_000);

let server: FaultServer;
let played: readonly Played[] = [];
const rejections: unknown[] = [];
const onRejection = (reason: unknown) => rejections.push(reason);

// Not in concurrent tests: Jest refuses the `import()` of a vendor's SDK between two of them.
beforeAll(async () => {
  process.on('unhandledRejection', onRejection);
  server = await startFaultServer();
  played = await playAll(server, faults);
});
afterAll(async () => {
  await server.close();
  process.off('unhandledRejection', onRejection);
});

const cases = faults
  .flatMap((fault) => fault.wires.map((wire) => `${fault.row}: ${fault.id} over ${wire}`))
  .map((title, index) => ({ title, index }));

describe('every fault on every wire', () => {
  it.each(cases)('$title', ({ index }) => {
    expect(played[index]?.wrongs).toEqual([]);
  });

  it('X1: leaves no rejection unhandled', () => {
    expect(rejections).toEqual([]);
  });
});
