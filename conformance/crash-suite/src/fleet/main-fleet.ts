import { ReplaySubject } from 'rxjs';
import { fleetReportOf } from './fleet-report.js';
import { type FleetOptions, type FleetProgress, runFleet } from './run-fleet.js';

export type MainFleetOptions = Pick<FleetOptions, 'seed' | 'calls' | 'processes' | 'disturbMs'>;

/** Runs a fleet, shows its progress on stderr, and prints the result. Resolves to the exit code. */
export const mainFleet = async (options: MainFleetOptions): Promise<number> => {
  const cut$ = new ReplaySubject<void>(1);
  const cut = (): void => cut$.next();
  process.once('SIGINT', cut);
  const run = await runFleet({ ...options, cut$, onProgress: progressOf(options) });
  process.off('SIGINT', cut);
  const { wrongs } = run.verdict;
  console.log(`\n${fleetReportOf(run)}\n`);
  if (run.isCut) {
    console.log('It was cut: that is a part of what was asked for.');
    return 130;
  }
  wrongs.forEach((wrong) => console.log(`WRONG: ${wrong}.`));
  if (wrongs.length === 0) {
    console.log('All is as it must be.');
    return 0;
  }
  const { seed, calls, processes, disturbMs } = options;
  console.log(
    `To do that again: npm run crash -- --fleet --seed ${seed} --calls ${calls} --processes ${processes} --seconds ${disturbMs / 1_000}`,
  );
  return 1;
};

/** One line of a terminal, else a line every ten seconds. */
const progressOf = ({ calls }: MainFleetOptions): ((soFar: FleetProgress) => void) => {
  const { isTTY } = process.stderr;
  let tens = 0;
  return ({ ended, kills, stops, drains, ms }) => {
    const line = `fleet: ${ended} of ${calls} calls, ${kills} kills, ${stops} stops, ${drains} drains, ${(ms / 1_000).toFixed(0)} s`;
    if (isTTY) process.stderr.write(`\r${line}${ended < calls ? '' : '\n'}`);
    const before = tens;
    tens = Math.floor(ms / 10_000);
    if (!isTTY && tens > before) process.stderr.write(`${line}\n`);
  };
};
