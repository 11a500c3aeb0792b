import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isRecord } from '../is-record.js';
import type { Job } from '../jobs/job.js';
import type { Seen } from '../mock/seen.js';
import type { MockOptions } from '../mock/start-mock.js';
import { startChild } from './children.js';
import { onlyMessage } from './only-message.js';
import { startMockProcess } from './start-mock-process.js';

/** One job that is done for one adapter. */
export interface Measurement<Options, Result> extends MockOptions {
  /** The file that exports `open`. */
  readonly module: string;
  readonly job: Job<Options, Result>;
  readonly options: Options;
  /** The program that runs it. */
  readonly node: string;
  /** Milliseconds until it is given up. */
  readonly limitMs: number;
}

/** What came of it, in the process that was measured and at the mock. */
export interface Measured<Result> {
  readonly result: Result;
  readonly seen: Seen;
}

/**
 * Does a job in a fresh process, against a fresh mock in another one. The process that is measured says nothing before it has
 * ended. Rejects with the reason where it fails, crashes or takes too long.
 */
export const measure = async <Options, Result>(
  measurement: Measurement<Options, Result>,
): Promise<Measured<Result>> => {
  const mock = await startMockProcess(measurement);
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  try {
    const { baseURL, certificate } = mock;
    const trusted = certificate && join(folder, 'certificate.pem');
    if (trusted) writeFileSync(trusted, certificate);
    const outcome = await outcomeOf(measurement, baseURL, trusted);
    const seen = await mock.seen();
    return { result: resultOf(measurement, outcome, refusals(seen)), seen };
  } finally {
    rmSync(folder, { recursive: true });
    await mock.close();
  }
};

/** Does a job in a fresh process for an adapter that asks no mock. */
export const measureAlone = async <Options, Result>(
  measurement: Omit<Measurement<Options, Result>, keyof MockOptions>,
): Promise<Result> => resultOf(measurement, await outcomeOf(measurement, ''), []);

const resultOf = <Options, Result>(
  { job }: Pick<Measurement<Options, Result>, 'job'>,
  outcome: unknown,
  reasons: readonly string[],
): Result => {
  if (isRecord(outcome) && typeof outcome['failure'] === 'string') {
    throw new Error([outcome['failure'], ...reasons].join(' '));
  }
  const result = isRecord(outcome) ? outcome['result'] : undefined;
  if (!job.isResult(result)) throw new Error('It says something else than its result.');
  return result;
};

/** A framework may not tell why it was refused. */
const refusals = ({ refused: [first] }: Seen): readonly string[] =>
  first === undefined ? [] : [`The mock refused: ${first}`];

const outcomeOf = <Options, Result>(
  { module, job, options, node, limitMs }: Measurement<Options, Result>,
  baseURL: string,
  trusted?: string,
): Promise<unknown> => {
  const process = fileURLToPath(new URL('../../dist/jobs/process.js', import.meta.url));
  const args = [module, baseURL, job.name, JSON.stringify(options)];
  return onlyMessage(startChild(process, args, { execPath: node, trusted }), limitMs);
};
