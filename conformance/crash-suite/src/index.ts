export { type Bench, openBench } from './bench.js';
export { contest, type ContestOptions, type Round } from './contest/contest.js';
export { type Crashed, type CrashOptions, crashStore } from './driver/crash-store.js';
export { type StoreName, storeNames } from './places/place.js';
export { type FleetOptions, type FleetRun, runFleet } from './fleet/run-fleet.js';
export { reportOf, wrongsOf } from './report.js';
