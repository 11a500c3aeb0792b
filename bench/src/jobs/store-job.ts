import { lastValueFrom } from 'rxjs';
import { question } from '../lookup.js';
import { isListOf, isNumber, isShape, isText } from '../guard.js';
import { loopAgent, stepsOf } from '../journal/loop-agent.js';
import { createCallStore, journal } from 'millrace/journal';
import { openStore, type OpenStore, type StorePlace } from '../journal/open-store.js';
import { timeAppends } from '../journal/time-appends.js';
import { type CallTime, timeCalls } from '../journal/time-calls.js';
import { type Following, timeFollowing } from '../journal/time-following.js';
import { timeSyncs } from '../journal/time-syncs.js';
import type { Job } from './job.js';

/** What is asked of a store. */
export interface StoreOptions extends StorePlace {
  /** Of calls with tools. */
  readonly script: string;
  readonly warmUp: number;
  readonly calls: number;
  readonly sideBySide: number;
  /** Steps that are written one by one. */
  readonly appends: number;
  /** Of the call that is resumed. */
  readonly longScript: string;
  /** How often. */
  readonly resumes: number;
  /** Of an answer that comes as fast as it can, and of one that comes in its time. */
  readonly burstScript: string;
  readonly pacedScript: string;
}

/** What a journal costs. */
export interface StoreCost {
  /** Calls one after the other, with all events and with steps alone. */
  readonly all: CallTime;
  readonly steps: CallTime;
  /** Of calls side by side. */
  readonly atOnce: CallTime;
  readonly bytesOfCall: number;
  readonly bytesOfSteps: number;
  readonly appendsMs: readonly number[];
  readonly resumeMs: readonly number[];
  readonly burst: Following;
  readonly bytesOfBurst: number;
  readonly paced: Following;
}

const isCallTime = isShape<CallTime>({ wallMs: isNumber, cpuMs: isNumber });
const isFollowing = isShape<Following>({
  events: isNumber,
  callMs: isNumber,
  lagsMs: isListOf(isNumber),
});

/** Measures what a store takes for the steps and the events of calls whose model answers at once. */
export const storeJob: Job<StoreOptions, StoreCost> = {
  name: 'store',
  isOptions: isShape({
    store: isText,
    folder: isText,
    url: isText,
    script: isText,
    warmUp: isNumber,
    calls: isNumber,
    sideBySide: isNumber,
    appends: isNumber,
    longScript: isText,
    resumes: isNumber,
    burstScript: isText,
    pacedScript: isText,
  }),
  isResult: isShape({
    all: isCallTime,
    steps: isCallTime,
    atOnce: isCallTime,
    bytesOfCall: isNumber,
    bytesOfSteps: isNumber,
    appendsMs: isListOf(isNumber),
    resumeMs: isListOf(isNumber),
    burst: isFollowing,
    bytesOfBurst: isNumber,
    paced: isFollowing,
  }),
  run: async (_open, options) => {
    const store = await openStore(options);
    try {
      return await costOf(store, options);
    } finally {
      await store.close();
    }
  },
};

const costOf = async (store: OpenStore, options: StoreOptions): Promise<StoreCost> => {
  const { calls } = store;
  const { script, warmUp, sideBySide, burstScript, pacedScript } = options;
  const agent = loopAgent(script, calls);
  const ofSteps = loopAgent(script, calls, { events: false });
  await timeCalls(agent, 'warm', warmUp);
  await timeCalls(ofSteps, 'warm-steps', warmUp);
  const [all, bytesOfAll] = await grown(store, () => timeCalls(agent, 'all', options.calls));
  const [steps, bytesOfSteps] = await grown(store, () =>
    timeCalls(ofSteps, 'steps', options.calls),
  );
  const atOnce = await timeCalls(agent, 'at-once', options.calls, sideBySide);
  const shared = {
    all,
    steps,
    atOnce,
    bytesOfCall: bytesOfAll / options.calls,
    bytesOfSteps: bytesOfSteps / options.calls / stepsOf(script),
  };
  if (calls === undefined) {
    const none = { events: 0, callMs: 0, lagsMs: [] };
    const appendsMs = await timeSyncs(options.folder, options.appends);
    return { ...shared, appendsMs, resumeMs: [], burst: none, bytesOfBurst: 0, paced: none };
  }
  const appendsMs = await timeAppends(calls, 'appends', options.appends);
  const long = loopAgent(options.longScript, calls);
  const durable = journal(createCallStore(calls));
  // Behind its end, not only behind its reply: its journal is closed by then.
  await lastValueFrom(long.call$(question, { callId: 'long' }));
  const resumeMs: number[] = [];
  for (let resumed = 0; resumed < options.resumes; resumed += 1) {
    const startedAt = performance.now();
    await lastValueFrom(durable.resume$(long, 'long'));
    resumeMs.push(performance.now() - startedAt);
  }
  const [burst, bytes] = await grown(store, () => timeFollowing(calls, 'burst', burstScript));
  const paced = await timeFollowing(calls, 'paced', pacedScript);
  return {
    ...shared,
    appendsMs,
    resumeMs,
    burst,
    bytesOfBurst: bytes / burst.events,
    paced,
  };
};

/** What some work gives, and by how many bytes the store has grown meanwhile. */
const grown = async <T>(
  { bytes }: OpenStore,
  work: () => Promise<T>,
): Promise<readonly [T, number]> => {
  const before = bytes();
  const result = await work();
  return [result, bytes() - before];
};
