import { expect } from '@jest/globals';
import equal from 'fast-deep-equal';
import type { StoredRecord } from '../index.js';
import type { Cut } from './cut-driver.test-support.js';
import { callId, called, hasBegun, resumed, type SetUp, written } from './lives.test-support.js';
import { follow, type Outcome, outcomeOf } from './outcome.test-support.js';
import { createWorld, type Life } from './process.test-support.js';

export type { SetUp } from './lives.test-support.js';

/** What is not as it would be without a cut. */
interface Wrong {
  readonly where: string;
  readonly what: string;
  readonly is: unknown;
  readonly wanted: unknown;
}

const nothing: Life['held'] = { claims: 0, streams: 0, waits: 0 };

/** Cuts a call once or more, resumes it to its end, and looks for what is lost, done twice, or held. */
const wrongsOf = async (
  setUp: SetUp,
  whole: Outcome,
  cuts: readonly Cut[],
): Promise<readonly Wrong[]> => {
  const world = createWorld();
  const where = cuts.map(({ how, records }) => `${how} at ${records}`).join(', then ');
  const [first, ...others] = cuts;
  const reader = follow(world);
  const lives = [await called(world, setUp, first)];
  if (!(await hasBegun(world))) {
    reader.leave();
    return [];
  }
  for (const cut of [...others, undefined]) lives.push(await resumed(world, setUp, cut));
  const outcome = await outcomeOf(world, lives.at(-1));
  reader.leave();
  const { told, uncertain, steps } = outcome;
  const isUncertain = (effect: string): boolean => uncertain.some((id) => effect.includes(id));
  const isFull = cuts.some(({ how }) => how === 'full');
  const leavesToolCalls = isFull && setUp.leavesToolCalls === true;
  const limit = whole.asked + cuts.length * (setUp.atOnce ?? 1);
  const found: Readonly<Record<string, readonly [is: unknown, wanted: unknown]>> = {
    reply: [outcome.reply, whole.reply],
    messages: leavesToolCalls ? [outcome.words, whole.words] : [outcome.messages, whole.messages],
    memories: [outcome.memories, whole.memories],
    effects: [[...new Set(outcome.effects)].sort(), [...new Set(whole.effects)].sort()],
    twice: [more(outcome.effects, whole.effects).filter((it) => !isUncertain(it)), []],
    asked: [outcome.asked, Math.min(outcome.asked, limit)],
    lost: [more(whole.told, told), []],
    extra: [more(told, whole.told).filter(isToldOnce), []],
    // Numbers of deltas that were shown and not recorded are left out.
    numbers: [outcome.numbers, [...new Set(outcome.numbers)].sort((a, b) => a - b)],
    seen: [reader.seen.map(({ seq }) => seq), outcome.numbers],
    steps: [steps.filter((step, index) => steps.indexOf(step) < index), []],
    held: [lives.map(({ held }) => held), lives.map(() => nothing)],
  };
  return Object.entries(found).flatMap(([what, [is, wanted]]) =>
    equal(is, wanted) ? [] : [{ where, what, is, wanted }],
  );
};

/** Those of some that are not among others, or not as often. */
const more = (some: readonly string[], others: readonly string[]): readonly string[] => {
  const left = new Map<string, number>();
  for (const it of others) left.set(it, (left.get(it) ?? 0) + 1);
  return some.filter((it) => {
    const count = left.get(it) ?? 0;
    left.set(it, count - 1);
    return count <= 0;
  });
};

/** What is told outside of steps. What is told within one is told again where that is begun again, and a call below says again that it has ended. */
const isToldOnce = (event: string): boolean =>
  toldOnce.test(event) || /^\{"type":"stateChanged".*"name":"plan"/u.test(event);

const toldOnce = new RegExp(
  `^\\{"type":"(?:preCall|postCall|messages\\w+|retrieved|recalled|steered)","rootId":"${callId}","callId":"${callId}"`,
  'u',
);

/** `MILLRACE_CUTS=all` cuts at every record, in each way, and each of these once more: it takes minutes. */
const isThorough = process.env['MILLRACE_CUTS'] === 'all';

const ways = ['killed', 'untold', 'full'] as const;

/** The number of cuts of a call. CI makes a share of them: each way at two places or more. */
const most = Math.max(6, Math.ceil(24 * Number(process.env['MILLRACE_RUNS'] ?? 1)));

/** Where a call of these records is cut: all through it, in each way in turn, and every fourth time once more. */
const cutsOf = (records: readonly StoredRecord[]): readonly (readonly Cut[])[] => {
  const { length } = records;
  const again = (position: number): Cut => ({
    how: position % 2 === 0 ? 'killed' : 'untold',
    records: 1 + ((position * 7) % length),
  });
  if (isThorough) {
    return records.flatMap(({ position: at }) => {
      const once = ways.map((how): readonly Cut[] => [{ how, records: at }]);
      return [...once, ...once.map((cuts) => [...cuts, again(at)])];
    });
  }
  const stride = Math.max(1, length / most);
  return Array.from({ length: Math.floor(length / stride) }, (_, index) => {
    const at = Math.ceil((index + 1) * stride);
    const cut: Cut = { how: ways[index % ways.length] ?? 'killed', records: at };
    return index % 4 === 3 ? [cut, again(at)] : [cut];
  });
};

/** Runs a call without a cut, then cuts it at its records, and some of these once more. */
export const healsFrom = async (setUp: SetUp): Promise<void> => {
  const world = createWorld();
  const life = await called(world, setUp);
  const whole = await outcomeOf(world, life);
  expect(life.held).toEqual(nothing);
  const wrongs: Wrong[] = [];
  for (const cuts of cutsOf(await written(world))) {
    if (wrongs.length === 0 || isThorough) wrongs.push(...(await wrongsOf(setUp, whole, cuts)));
  }
  expect(wrongs).toEqual([]);
};
