import type { Job } from '../jobs/job.js';
import type { MockOptions } from '../mock/start-mock.js';
import type { AdapterRef } from './adapters.js';
import { measure, measureAlone, type Measured } from './measure.js';
import type { NodeProgram } from './node-program.js';

/** What a scenario is measured with. */
export interface Bench {
  readonly adapters: readonly AdapterRef[];
  readonly rounds: number;
  /** A quick look: little is done, and what comes out says nothing. */
  readonly isSmall: boolean;
  /** What runs the processes that are measured. */
  readonly node: NodeProgram;
  /** Is told of each process that is about to be measured. */
  readonly onProgress: (what: string) => void;
}

/** What a scenario asks of a process, beside the adapter. */
export interface Task<Options, Result> extends MockOptions {
  readonly job: Job<Options, Result>;
  readonly options: Options;
  /** Milliseconds until it is given up. Default: 5 minutes. */
  readonly limitMs?: number;
}

/** Does a task for one adapter. */
export const doTask = <Options, Result>(
  { node }: Pick<Bench, 'node'>,
  { module }: AdapterRef,
  { limitMs = 300_000, ...task }: Task<Options, Result>,
): Promise<Measured<Result>> => measure({ ...task, module, node: node.path, limitMs });

/** Does a task for one adapter that needs no mock. */
export const doAlone = <Options, Result>(
  { node }: Pick<Bench, 'node'>,
  { module }: AdapterRef,
  { limitMs = 300_000, job, options }: Omit<Task<Options, Result>, keyof MockOptions>,
): Promise<Result> => measureAlone({ job, options, module, node: node.path, limitMs });
