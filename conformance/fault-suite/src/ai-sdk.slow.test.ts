import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { faults, type FaultServer, startFaultServer } from '@millrace/fault-server';
import { playAll } from './play-all.js';
import type { Played } from './play-fault.js';
import { aiSdkSubjects } from './subjects.js';

// Real sockets and processes may have to wait for a busy machine.
jest.setTimeout(240_000);

let server: FaultServer;
let played: readonly Played[] = [];
const rejections: unknown[] = [];
const onRejection = (reason: unknown) => rejections.push(reason);

beforeAll(async () => {
  process.on('unhandledRejection', onRejection);
  server = await startFaultServer();
  played = await playAll(server, faults, undefined, aiSdkSubjects);
});
afterAll(async () => {
  await server.close();
  process.off('unhandledRejection', onRejection);
});

const titlesOf = (list: readonly Played[]): readonly string[] =>
  list.map(({ fault, wire, outcome }) => `${fault.id} over ${wire}: ${outcome}`);

// A provider package reads the response, so what it makes of a fault may differ from what the vendor's own package does.
it('X1: no fault hangs a call through a provider of the AI SDK, or ends it with an untyped error', () => {
  const wrong = played.filter(({ outcome }) => /^hangs|untyped/.test(outcome));
  expect(played.length).toBeGreaterThan(600);
  expect(titlesOf(wrong)).toEqual([]);
});

it('X10: no fault makes it show the key', () => {
  const shown = played.filter(({ wrongs }) => wrongs.includes('the key is shown'));
  expect(titlesOf(shown)).toEqual([]);
});

it('X1: leaves no rejection unhandled', () => {
  expect(rejections).toEqual([]);
});
