import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { faults, type FaultServer, startFaultServer } from '@millrace/fault-server';
import { type Difference, differences } from './ai-sdk-differences.test-data.js';
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

it('X1: no fault hangs a call through a provider of the AI SDK, or ends it with an untyped error', () => {
  const wrong = played.filter(({ outcome }) => /^hangs|untyped/.test(outcome));
  expect(played.length).toBeGreaterThan(600);
  expect(titlesOf(wrong)).toEqual([]);
});

const pinnedIn = ({ faults: pinned }: Difference): readonly string[] =>
  Object.entries(pinned).flatMap(([id, outcomes]) =>
    Object.entries(outcomes).map(([wire, outcome]) => `${id} over ${wire}: ${outcome}`),
  );
const differing = (): readonly Played[] => played.filter(({ wrongs }) => wrongs.length > 0);

it.each(differences)('ends otherwise than by our own package. $reason', (difference) => {
  const own = new Set(Object.keys(difference.faults));
  const ended = titlesOf(differing().filter(({ fault }) => own.has(fault.id)));
  expect([...ended].sort()).toEqual([...pinnedIn(difference)].sort());
});

it('X1: every other fault ends as by our own package', () => {
  const pinned = new Set(differences.flatMap((it) => Object.keys(it.faults)));
  const others = differing().filter(({ fault }) => !pinned.has(fault.id));
  expect(others.map(({ fault, wire, wrongs }) => [fault.id, wire, wrongs])).toEqual([]);
});

it('X10: no fault makes it show the key', () => {
  const shown = played.filter(({ wrongs }) => wrongs.includes('the key is shown'));
  expect(titlesOf(shown)).toEqual([]);
});

it('X1: leaves no rejection unhandled', () => {
  expect(rejections).toEqual([]);
});
