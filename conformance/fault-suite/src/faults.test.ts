import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { faults, type FaultServer, startFaultServer } from '@millrace/fault-server';
import { warmUp } from './warm-up.js';
import { playFault } from './play-fault.js';

// Real sockets and processes may have to wait for a busy machine.
jest.setTimeout(180_000);

let server: FaultServer;
const rejections: unknown[] = [];
const onRejection = (reason: unknown) => rejections.push(reason);

beforeAll(async () => {
  process.on('unhandledRejection', onRejection);
  server = await startFaultServer();
  await warmUp(server);
});
afterAll(async () => {
  await server.close();
  process.off('unhandledRejection', onRejection);
});

const cases = faults.flatMap((fault) =>
  fault.wires.map((wire) => ({ fault, wire, title: `${fault.row}: ${fault.id} over ${wire}` })),
);

describe('every fault on every wire', () => {
  it.concurrent.each(cases)('$title', async ({ fault, wire }) => {
    const { wrongs } = await playFault(server, fault, wire);
    expect(wrongs).toEqual([]);
  });

  it('X1: leaves no rejection unhandled', () => {
    expect(rejections).toEqual([]);
  });
});
