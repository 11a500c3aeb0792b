import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { storeJob, type StoreCost, type StoreOptions } from '../jobs/store-job.js';
import { storeStartJob } from '../jobs/store-start-job.js';
import { stepsOf } from '../journal/loop-agent.js';
import { storeNames } from '../journal/open-store.js';
import { hasPostgres, startServer } from '../journal/start-server.js';
import { quantile } from '../quantile.js';
import { type AdapterRef, toolAdapters } from '../runner/adapters.js';
import { type Bench, doAlone } from '../runner/bench.js';
import { measureRounds, medianOf, type Outcome, ratiosOf } from '../runner/outcomes.js';
import { shown, shownRatio } from '../runner/show.js';
import type { Table } from '../table.js';
import { failuresOf, rawOf, rowOf, type Scenario } from './scenario.js';

type Work = Omit<StoreOptions, 'store' | 'folder' | 'url'>;

const work: Work = {
  script: '10x2-1',
  warmUp: 20,
  calls: 64,
  sideBySide: 32,
  appends: 200,
  longScript: '200x2-1',
  resumes: 3,
  burstScript: '0x0-10000',
  pacedScript: '0x0-300-5',
};

const littleWork: Work = {
  script: '1x1-1',
  warmUp: 1,
  calls: 2,
  sideBySide: 2,
  appends: 3,
  longScript: '2x1-1',
  resumes: 1,
  burstScript: '0x0-20',
  pacedScript: '0x0-3-1',
};

/** What came of one store in one round. */
interface Measured extends StoreCost {
  readonly firstMs: number;
  readonly laterMs: number;
}

/** (k): what it costs to write calls down. */
export const journal: Scenario = {
  letter: 'k',
  about: 'a journal in each store: steps, events, bytes, the start, and how calls are resumed',
  run: async (bench) => {
    const [agent] = toolAdapters.filter(({ name }) => name === 'millrace');
    if (agent === undefined) throw new Error('Nothing runs the calls.');
    const stores = storeNames
      .filter((name) => name !== 'postgres' || hasPostgres())
      .map((name): AdapterRef => ({ ...agent, name, floor: 'none' }));
    const asked = bench.isSmall ? littleWork : work;
    const outcomes = await measureRounds({ ...bench, adapters: stores }, '(k) journal', (store) =>
      inFolder((folder) => measureStore(bench, store, folder, asked)),
    );
    return {
      tables: [callsTable(outcomes, asked), storesTable(outcomes, asked)],
      failures: failuresOf(outcomes),
      raw: rawOf(outcomes),
    };
  },
};

const inFolder = async <T>(task: (folder: string) => Promise<T>): Promise<T> => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-journal-'));
  try {
    return await task(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

const measureStore = async (
  bench: Bench,
  adapter: AdapterRef,
  folder: string,
  asked: Work,
): Promise<Measured> => {
  const server = adapter.name === 'postgres' ? await startServer(folder) : undefined;
  try {
    const place = { store: adapter.name, folder, url: server?.url ?? '' };
    const start = { job: storeStartJob, options: place };
    const first = await doAlone(bench, adapter, start);
    const later = await doAlone(bench, adapter, start);
    const options = { ...place, ...asked };
    const cost = await doAlone(bench, adapter, { job: storeJob, options });
    return { ...cost, firstMs: first.ms, laterMs: later.ms };
  } finally {
    await server?.stop();
  }
};

const callsTable = (outcomes: readonly Outcome<Measured>[], asked: Work): Table => {
  const steps = stepsOf(asked.script);
  const perSecond = (wallMs: number): string => shown((steps * 1_000) / wallMs);
  const cpu = ({ all }: Measured): number => all.cpuMs;
  return {
    title: `(k) calls of ${steps} steps (${asked.script}) with a model that answers at once`,
    about:
      'CPU of a call, and its ratio to one without a journal in the same round; with steps alone, where no event is written down; steps in a second, one call after the other and with 32 calls side by side; bytes of a step, without events, and of a whole call; time to resume a call that has ended.',
    columns: [
      { name: 'store', isWords: true },
      ...['cpu ms', 'ratio', 'steps alone', 'steps/s', 'steps alone', '32 calls', 'B/step'].map(
        (name) => ({ name }),
      ),
      ...['kB/call', `resume ${stepsOf(asked.longScript)} steps: ms`].map((name) => ({ name })),
    ],
    rows: outcomes.map((outcome) =>
      rowOf(outcome, () => [
        shown(medianOf(outcome, cpu)),
        shownRatio(ratiosOf(outcome, outcomes, cpu)),
        shownRatio(ratiosOf(outcome, outcomes, (it) => it.steps.cpuMs)),
        perSecond(medianOf(outcome, ({ all }) => all.wallMs)),
        perSecond(medianOf(outcome, (it) => it.steps.wallMs)),
        perSecond(medianOf(outcome, ({ atOnce }) => atOnce.wallMs)),
        shown(medianOf(outcome, ({ bytesOfSteps }) => bytesOfSteps)),
        shown(medianOf(outcome, ({ bytesOfCall }) => bytesOfCall) / 1_000),
        shown(medianOf(outcome, ({ resumeMs }) => quantile(resumeMs, 0.5))),
      ]),
    ),
    notes: failuresOf(outcomes),
  };
};

const storesTable = (outcomes: readonly Outcome<Measured>[], asked: Work): Table => {
  const at = (
    outcome: Outcome<Measured>,
    pick: (it: Measured) => readonly number[],
    part: number,
  ) => shown(medianOf(outcome, (it) => quantile(pick(it), part)));
  return {
    title: '(k) what a store does with a step, and with an event',
    about: `start: until the first step of a process is safe, in an empty store and in one that is there. append: until a step of 400 bytes is safe, one after the other; of none, a write of that size and fdatasync, to which ratio is. burst: events in a second of an answer of ${asked.burstScript}, bytes of each, and how much later than the last was told who follows had it. lag: the same of each event of ${asked.pacedScript}.`,
    columns: [
      { name: 'store', isWords: true },
      ...['start ms', 'again ms', 'append p50 ms', 'ratio', 'p95', 'p99'].map((name) => ({ name })),
      ...['burst /s', 'B/event', 'behind ms', 'lag p50 ms', 'p95', 'most'].map((name) => ({
        name,
      })),
    ],
    rows: outcomes.map((outcome) =>
      rowOf(outcome, () => [
        shown(medianOf(outcome, ({ firstMs }) => firstMs)),
        shown(medianOf(outcome, ({ laterMs }) => laterMs)),
        at(outcome, ({ appendsMs }) => appendsMs, 0.5),
        shownRatio(ratiosOf(outcome, outcomes, ({ appendsMs }) => quantile(appendsMs, 0.5))),
        ...[0.95, 0.99].map((part) => at(outcome, ({ appendsMs }) => appendsMs, part)),
        shown(medianOf(outcome, ({ burst }) => (burst.events * 1_000) / burst.callMs)),
        shown(medianOf(outcome, ({ bytesOfBurst }) => bytesOfBurst)),
        shown(medianOf(outcome, ({ burst }) => burst.lagsMs.at(-1) ?? NaN)),
        ...[0.5, 0.95, 1].map((part) => at(outcome, ({ paced }) => paced.lagsMs, part)),
      ]),
    ),
  };
};
