import { type Guard, isFlag, isListOf, isNumber, isShape, isText } from '../guard.js';
import { isRecord } from '../is-record.js';
import { type Calls, type Costs, isCalls, isCosts } from '../jobs/calls-job.js';
import { median } from '../median.js';
import type { Machine } from '../runner/machine.js';
import { type Outcome, ratiosOf } from '../runner/outcomes.js';
import { UsageError } from '../runner/usage-error.js';

/** One Node of a run of the bench, as a chart shows it. */
export interface Run {
  readonly machine: Machine;
  readonly node: string;
  readonly rounds: number;
  /** A quick look, whose numbers mean nothing. */
  readonly isSmall: boolean;
  /** The versions of all packages, by what uses them: `bench` for the adapters of this repository, or a peer. */
  readonly versions: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly panels: readonly Panel[];
}

/** One scenario. */
export interface Panel {
  readonly title: string;
  readonly calls: Calls;
  readonly groups: readonly Group[];
}

/** The adapters that have the same floor, the cheapest old one first and those that failed last. */
export interface Group {
  /** The name of the floor, and the medians of its CPU time in milliseconds. */
  readonly floor: string;
  readonly youngMs: number;
  readonly oldMs: number;
  readonly rows: readonly Row[];
}

/** One adapter: its ratios to the floor. */
export interface Row {
  readonly adapter: string;
  /** Undefined if the adapter or its floor failed. */
  readonly bars: { readonly young: Bar; readonly old: Bar } | undefined;
}

/** The ratios of all rounds. */
export interface Bar {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** The scenarios of a chart. */
const letters = ['a', 'b', 'c', 'm', 'n', 'o'];

/** Reads what `--json` has written. `node` is the version, or its beginning; needed if the run had several. */
export const readRun = (json: unknown, node?: string): Run => {
  if (!isRunJson(json)) throw new UsageError('The bench has not written this, or another version.');
  const { results, ...run } = json;
  const shown = results.filter(({ scenario }) => letters.includes(scenario));
  const nodes = [...new Set(shown.map((result) => result.node))];
  const chosen = nodes.filter((one) => node === undefined || `${one}.`.startsWith(`${node}.`));
  const [only] = chosen;
  if (only === undefined || chosen.length > 1) {
    throw new UsageError(
      nodes.length === 0
        ? `The run has no scenario ${letters.join(' and no ')}.`
        : `Choose a Node of this run by \`--node\`: ${nodes.join(', ')}.`,
    );
  }
  return {
    ...run,
    node: only,
    panels: shown.filter((result) => result.node === only).map(panelOf),
  };
};

const panelOf = ({ tables: [table], raw }: ResultJson): Panel => {
  if (!isRaw(raw)) throw new UsageError('Another version of the bench has written this.');
  const outcomes = raw.outcomes.map(({ adapter, floor, ...rest }) => ({
    adapter: { name: adapter, floor },
    ...rest,
  }));
  const floors = [...new Set(outcomes.map(({ adapter }) => adapter.floor))];
  return {
    title: table?.title ?? '',
    calls: raw.calls,
    groups: floors.map((floor) => groupOf(floor, outcomes)),
  };
};

const young = (costs: Costs): number => costs.young.cpuMs;
const old = (costs: Costs): number => costs.old.cpuMs;

const groupOf = (floor: string, outcomes: readonly Outcome<Costs>[]): Group => {
  const least = outcomes.find(({ adapter }) => adapter.name === floor)?.rounds ?? [];
  const rows = outcomes.filter(({ adapter }) => adapter.floor === floor).map(rowOf(outcomes));
  const order = ({ bars }: Row): number => bars?.old.median ?? Infinity;
  return {
    floor,
    youngMs: median(least.map(young)),
    oldMs: median(least.map(old)),
    rows: rows.toSorted((a, b) => (order(a) === order(b) ? 0 : order(a) - order(b))),
  };
};

const rowOf =
  (outcomes: readonly Outcome<Costs>[]) =>
  (outcome: Outcome<Costs>): Row => {
    const barOf = (pick: (costs: Costs) => number): Bar => {
      const ratios = ratiosOf(outcome, outcomes, pick);
      return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
    };
    const bars = { young: barOf(young), old: barOf(old) };
    const isWhole = outcome.failure === undefined && Number.isFinite(bars.old.median);
    return { adapter: outcome.adapter.name, bars: isWhole ? bars : undefined };
  };

const isRecordOf =
  <T>(isField: Guard<T>): Guard<Readonly<Record<string, T>>> =>
  (value): value is Readonly<Record<string, T>> =>
    isRecord(value) && Object.values(value).every((field) => isField(field));

interface ResultJson {
  readonly scenario: string;
  readonly node: string;
  readonly tables: readonly { readonly title: string }[];
  /** Of another shape for each scenario. */
  readonly raw: unknown;
}

const isRunJson = isShape<
  Omit<Run, 'node' | 'panels'> & { readonly results: readonly ResultJson[] }
>({
  machine: isShape({
    date: isText,
    cpu: isText,
    cores: isNumber,
    memoryGb: isNumber,
    system: isText,
  }),
  versions: isRecordOf(isRecordOf(isText)),
  rounds: isNumber,
  isSmall: isFlag,
  results: isListOf(
    isShape<ResultJson>({
      scenario: isText,
      node: isText,
      tables: isListOf(isShape({ title: isText })),
      raw: (value): value is unknown => value !== undefined,
    }),
  ),
});

interface OutcomeJson {
  readonly adapter: string;
  readonly floor: string;
  readonly rounds: readonly Costs[];
  readonly failure?: string;
}

const isRaw = isShape<{ readonly calls: Calls; readonly outcomes: readonly OutcomeJson[] }>({
  calls: isCalls,
  outcomes: isListOf(
    isShape<Omit<OutcomeJson, 'failure'>>({
      adapter: isText,
      floor: isText,
      rounds: isListOf(isCosts),
    }),
  ),
});
