import { isDeepStrictEqual } from 'node:util';
import type { Bench } from '../bench.js';
import { checkCall, type Verdict } from '../checks/check-call.js';
import { deedsAfterInterrupt } from '../checks/deeds.js';
import { expectedMemory } from '../checks/expected.js';
import type { EffectServer } from '../effects/effect-server.js';
import type { ErrandCall, Outcome } from '../life/said.js';
import type { Place } from '../places/place.js';
import { planOf } from '../script/plan.js';
import { outermost, taskOf } from '../script/script-agent.js';
import type { Life } from './life.js';
import { type CountedLife, type Kill, live } from './live.js';
import { type Hit, hitsOf } from './hits.js';

/** Some calls in one place, and when their processes are killed. */
export interface TrialPlan {
  readonly name: string;
  readonly place: Place;
  readonly calls: readonly ErrandCall[];
  /** One for each process; the next one after them lives. */
  readonly kills: readonly Kill[];
}

/** What came of a trial. */
export interface Trial {
  readonly kills: number;
  /** Of the last process. */
  readonly points: number;
  readonly verdicts: readonly Verdict[];
  /** Where calls were when their process was killed. */
  readonly hits: readonly Hit[];
  /** How long it took until a call went on, in milliseconds. */
  readonly resumeMs: readonly number[];
  readonly wrongs: readonly string[];
}

/** Leads calls to their ends in as many processes as it takes, and holds what is left against what must be. */
export const runTrial = async (plan: TrialPlan, bench: Bench): Promise<Trial> => {
  const { server } = bench;
  const { name, place, calls, kills } = plan;
  const lives: CountedLife[] = [];
  do {
    const life = `${name}.${lives.length}`;
    const errand = { life, place, url: server.url, calls, isFirst: lives.length === 0 };
    lives.push(await live(errand, bench, kills[lives.length]));
  } while (lives.at(-1)?.wasKilled === true);
  const outcomes = lives.flatMap((life) => life.outcomes);
  const checked = await Promise.all(calls.map((call) => verdictOn(call, lives, outcomes, server)));
  return {
    kills: lives.length - 1,
    points: lives.at(-1)?.points ?? 0,
    verdicts: checked,
    hits: hitsOf(
      lives,
      calls.map(({ callId }) => callId),
      (key) => server.arrivals(key),
    ),
    resumeMs: lives.flatMap(({ said }) =>
      said.flatMap((it) => (it.type === 'resumed' ? it.ms : [])),
    ),
    wrongs: [
      ...lives.flatMap(({ wrongs }) => wrongs),
      ...lives.flatMap(({ failures }) => failures).map((it) => `${it.callId}: ${it.message}`),
      ...checked.flatMap((verdict, index) => complaints(calls[index]?.callId ?? '', verdict)),
    ],
  };
};

const verdictOn = async (
  call: ErrandCall,
  lives: readonly Life[],
  outcomes: readonly Outcome[],
  server: EffectServer,
): Promise<Verdict> => {
  const own = outcomes.filter(({ callId }) => callId === call.callId);
  const outcome = own.at(-1);
  if (outcome === undefined) return unfinished;
  const isSame = own.every(({ replies }) => isDeepStrictEqual(replies, outcome.replies));
  const plan = planOf(call.seed);
  const verdict = checkCall({
    call,
    plan,
    outcome,
    expected: await expectedMemory({ ...call, task: taskOf(call.seed), plan }),
    uncertain: lives.flatMap(({ said }) =>
      said.flatMap((it) =>
        it.type === 'uncertain' && outermost(it.key) === call.callId ? [it] : [],
      ),
    ),
    arrivals: server.arrivals(call.callId),
    after: deedsAfterInterrupt(
      lives.flatMap(({ said }) => said),
      call.callId,
    ),
  });
  return isSame
    ? verdict
    : { ...verdict, wrongs: [...verdict.wrongs, 'its reply was another one before'] };
};

const unfinished: Verdict = {
  isKept: false,
  effects: 0,
  lost: [],
  doubled: [],
  uncertain: 0,
  isInterrupted: false,
  after: [],
  wrongs: ['it was not finished'],
};

const complaints = (
  callId: string,
  { lost, doubled, after, wrongs }: Verdict,
): readonly string[] => [
  ...lost.map((key) => `${callId}: ${key} was lost`),
  ...doubled.map((key) => `${callId}: ${key} was done twice`),
  ...after.map((deed) => `${callId}: it ${deed} after its interrupt was written down`),
  ...wrongs.map((wrong) => `${callId}: ${wrong}`),
];
