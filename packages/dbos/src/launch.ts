import { DBOS } from '@dbos-inc/dbos-sdk';
import { MillraceError } from 'millrace';
import { messageOf } from 'millrace/values';
import { Observable } from 'rxjs';
import type { Database } from './database.js';
import { unavailable } from './errors.js';
import { queueOf } from './order.js';
import type { Outcome, PerformedAgent } from './perform.js';
import type { Worker } from './recovery.js';
import type { WorkedAgent, WorkOptions } from './worked-agents.js';

/** DBOS is one per process: the next worker waits for the end of the one before. */
const inProcess: { isWorking: boolean; ended: Promise<unknown> } = {
  isWorking: false,
  ended: Promise.resolve(),
};

/** Resolves when no worker of this process uses the database. */
export const workEnded = (): Promise<unknown> => inProcess.ended;

/** Makes this worker that of the process. Throws if there is one. */
export const claimProcess = (): void => {
  if (inProcess.isWorking) throw oncePerProcess();
  inProcess.isWorking = true;
};

export const leaveProcess = (): void => {
  inProcess.isWorking = false;
};

const oncePerProcess = (): MillraceError =>
  new MillraceError(
    'config',
    'DBOS runs once in a process: end the other work$(), or the DBOS of the program, first.',
  );

export type Run = (worked: PerformedAgent, order: unknown) => Promise<Outcome>;

/** Starts DBOS, and emits once it runs. Unsubscribing shuts it down, and puts its calls back into their queues. */
export const launch$ = (
  database: Database,
  worker: Worker,
  agents: readonly WorkedAgent[],
  options: WorkOptions,
  run: Run,
  warn: (message: string) => void,
): Observable<void> =>
  new Observable((subscriber) => {
    const begun = inProcess.ended.then(() => launch(database, worker, agents, options, run, warn));
    begun.then(
      () => subscriber.next(),
      (error: unknown) => subscriber.error(unavailable(error)),
    );
    return () => {
      const ignore = (): void => undefined;
      // Others need not find out that this worker is gone. DBOS may take more calls until it has ended.
      const leave = (): Promise<void> => database.leave(worker.id).catch(ignore);
      inProcess.ended = begun
        .catch(ignore)
        .then(leave)
        .then(() => DBOS.shutdown({ deregister: true }))
        .catch(ignore)
        .then(leave);
    };
  });

/** Starts DBOS in this process, with a workflow and a queue for each agent. */
const launch = async (
  database: Database,
  { id, version }: Worker,
  agents: readonly WorkedAgent[],
  { pollMs = 100, maxRecoveries = 50 }: WorkOptions,
  run: Run,
  warn: (message: string) => void,
): Promise<void> => {
  const { name, schema, pool } = database;
  if (DBOS.isInitialized()) throw oncePerProcess();
  const warned = (entry: unknown): void => warn(`DBOS: ${messageOf(entry)}`);
  const ignore = (): void => undefined;
  DBOS.setConfig({
    name,
    systemDatabasePool: pool,
    systemDatabaseSchemaName: schema,
    runMigrations: false,
    executorID: id,
    applicationVersion: version,
    listenQueues: agents.map(({ agent }) => queueOf(name, agent.name)),
    // Its errors are those of calls.
    logger: { info: ignore, debug: ignore, warn: warned, error: ignore },
  });
  for (const worked of agents) {
    // DBOS knows a function by one name only.
    DBOS.registerWorkflow((order: unknown) => run(worked, order), {
      name: worked.agent.name,
      serialization: 'portable',
      maxRecoveryAttempts: maxRecoveries,
    });
  }
  const registrar = await database.client();
  for (const { agent, concurrency = 10, maxRunning, rate } of agents) {
    // Before the launch: DBOS looks for new queues once a second.
    await registrar.registerQueue(queueOf(name, agent.name), {
      partitionConcurrency: 1,
      workerConcurrency: Math.min(concurrency, maxRunning ?? concurrency),
      minPollingIntervalMs: pollMs,
      onConflict: 'always_update',
      ...(maxRunning === undefined ? {} : { globalConcurrency: maxRunning }),
      ...(rate === undefined
        ? {}
        : { rateLimit: { limitPerPeriod: rate.calls, periodSec: rate.perMs / 1_000 } }),
    });
  }
  await DBOS.launch();
  // After a rollback, too: only workers of the latest version run calls that name none.
  await DBOS.setLatestApplicationVersion(version);
};
