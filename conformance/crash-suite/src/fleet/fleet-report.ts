import { tableOf } from '../table.js';
import type { FleetRun } from './run-fleet.js';

const header = [
  'fleet',
  'kills',
  'stops',
  'drains',
  'calls',
  'sessions',
  'effects',
  'lost',
  'doubled',
  'uncertain',
  'interrupted',
  'steered',
  'suspended',
  'recovered',
  'wrong',
  'resume p50 ms',
  'p95',
  's',
];

/** Formats the result of a run as a table. */
export const fleetReportOf = ({ verdict, resumeMs, ...run }: FleetRun): string => {
  const sorted = resumeMs.toSorted((a, b) => a - b);
  const quantile = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(0);
  return tableOf(header, [
    [
      'dbos',
      run.kills,
      run.stops,
      run.drains,
      verdict.calls,
      verdict.sessions,
      verdict.effects,
      verdict.lost,
      verdict.doubled,
      verdict.uncertain,
      verdict.interrupted,
      verdict.steered,
      verdict.suspended,
      run.recovered,
      verdict.wrongs.length,
      quantile(0.5),
      quantile(0.95),
      (run.ms / 1_000).toFixed(1),
    ],
  ]);
};
