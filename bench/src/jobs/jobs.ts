import { abortJob } from './abort-job.js';
import { atOnceJob } from './at-once-job.js';
import { callsJob } from './calls-job.js';
import { idleJob } from './idle-job.js';
import type { Job, OpenHere } from './job.js';
import { slowJob } from './slow-job.js';
import { storeJob } from './store-job.js';
import { storeStartJob } from './store-start-job.js';

/** Does a job whose options have come from another process. */
export type AnyJob = (open: OpenHere, options: unknown) => Promise<unknown>;

const checked = <Options>({ name, isOptions, run }: Job<Options, unknown>): [string, AnyJob] => [
  name,
  (open, options) => {
    if (!isOptions(options)) throw new Error(`The job '${name}' has other options.`);
    return run(open, options);
  },
];

/** All jobs, by name. */
export const jobs: ReadonlyMap<string, AnyJob> = new Map([
  checked(callsJob),
  checked(atOnceJob),
  checked(slowJob),
  checked(abortJob),
  checked(idleJob),
  checked(storeJob),
  checked(storeStartJob),
]);
