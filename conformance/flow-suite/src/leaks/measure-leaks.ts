import { setTimeout as sleep } from 'node:timers/promises';
import { from, lastValueFrom, mergeMap } from 'rxjs';
import { collectGarbage, settledMb } from '../memory-held.js';
import { spreadOf } from '../spread.js';
import type { Count } from './ledger.js';
import type { Shared } from './shared.js';
import type { Sort } from './sort.js';

/** How leaks are looked for. */
export interface LeaksOptions {
  /** Calls of a block: the memory is looked at behind each. */
  readonly perBlock: number;
  /** How many, beside those that only warm up. */
  readonly blocks: number;
  readonly onProgress?: (calls: number) => void;
}

/** What calls have left behind. */
export interface Leaks {
  readonly calls: number;
  /** The growth of the memory that is held for each 1,000 calls, the median of the blocks, in kilobytes. */
  readonly growthKb: number;
  /** What keeps the process alive and was not there before, such as timers and sockets. */
  readonly resources: readonly string[];
  /** Listeners at the signal that all calls share: the most at once, and those that are left. */
  readonly listeners: { readonly most: number; readonly left: number };
  /** Subscriptions to models, tools, interrupts and demands. */
  readonly subscriptions: Count;
  /** Memories of sessions. */
  readonly sessions: Count;
  /** Sorts of calls that ended otherwise than they must. */
  readonly wrongs: readonly string[];
}

/** Makes calls of all sorts in turn, some at once, and tells what is left of them. */
export const measureLeaks = async (
  { ledger, listeners }: Shared,
  sorts: readonly Sort[],
  { perBlock, blocks, onProgress = () => undefined }: LeaksOptions,
): Promise<Leaks> => {
  const resources = process.getActiveResourcesInfo();
  const wrongs = new Set<string>();
  let mostListeners = 0;
  let calls = 0;
  const call = async ({ name, ends, call: callOnce }: Sort): Promise<void> => {
    calls += 1;
    const ended = callOnce(`call-${calls}`);
    mostListeners = Math.max(mostListeners, listeners());
    const end = await ended;
    if (end !== ends) wrongs.add(`a call (${name}) ended as ${end}`);
  };
  const held: number[] = [];
  for (let block = 0; block < warmUps + blocks; block += 1) {
    const inTurn = Array.from(
      { length: perBlock },
      (_, index) => sorts[index % sorts.length] ?? [],
    );
    await lastValueFrom(from(inTurn.flat()).pipe(mergeMap(call, atOnce)));
    held.push(await settledMb());
    onProgress(calls);
  }
  const left = (): readonly string[] => added(resources, process.getActiveResourcesInfo());
  await upTo(2_000, () => left().length + ledger.subscriptions.left + ledger.objects.left === 0);
  return {
    calls,
    growthKb: (growthOf(held.slice(warmUps)) * 1_000_000) / perBlock,
    resources: left(),
    listeners: { most: mostListeners, left: listeners() },
    subscriptions: { ...ledger.subscriptions },
    sessions: { ...ledger.objects },
    wrongs: [...wrongs],
  };
};

/** Waits until all is as it should be, at most so many milliseconds: a socket needs some to be closed. */
const upTo = async (ms: number, isRight: () => boolean): Promise<void> => {
  const until = performance.now() + ms;
  while (!isRight() && performance.now() < until) {
    await sleep(20);
    collectGarbage();
  }
};

/** Blocks before the first look: code is compiled, and caches are filled. */
const warmUps = 2;

/** Calls that are under way at once. */
const atOnce = 8;

/**
 * How much memory grows from one block to the next: the median. A leak adds to every block; code that the runtime compiles,
 * tables that it doubles, and garbage that it collects later add to one.
 */
const growthOf = (looks: readonly number[]): number =>
  spreadOf(looks.slice(1).map((look, index) => look - (looks[index] ?? 0))).median;

/** What is there now beyond what was there before. */
const added = (before: readonly string[], now: readonly string[]): readonly string[] => {
  const rest = [...before];
  return now.filter((name) => {
    const index = rest.indexOf(name);
    if (index >= 0) rest.splice(index, 1);
    return index < 0;
  });
};
