import { type Connection, idsIn, lockSeed, silentMs, workerName } from './connection.js';
import { versionOf } from './order.js';

/** Continues the running calls of workers that end or die. */
export interface Recovery {
  /** The other workers of our version that have running calls but are not connected. Disconnects those that hang. */
  gone(ours: Worker, queues: readonly string[]): Promise<readonly string[]>;
  /**
   * Puts the running calls of workers back into their queues, after `release` of their claims, but for workers that are
   * connected again. Resolves to their ids.
   */
  recover(
    workers: readonly string[],
    queues: readonly string[],
    release: (callIds: readonly string[]) => Promise<unknown>,
  ): Promise<readonly string[]>;
  /** Puts a call that ended at a step, because its worker drains, back into its queue. */
  handOver(callId: string): Promise<void>;
  /** Puts the running calls of a worker of this process, which has stopped, back into their queues. */
  leave(worker: string): Promise<void>;
  /** Moves calls that have not ended from another version to ours, but for those that a live worker runs. */
  adopt(version?: string, ours?: string): Promise<readonly string[]>;
}

export interface Worker {
  readonly id: string;
  readonly version: string;
}

export const recovery = (
  { query, inTransaction }: Pick<Connection, 'query' | 'inTransaction'>,
  name: string,
  status: string,
): Recovery => {
  const { hanging, gone, running, requeue, left, adopt } = statementsOn(status);
  return {
    gone: async ({ id, version }, queues) => {
      await query(hanging, [queues, version, id]);
      return idsIn(await query(gone, [queues, version, id]));
    },
    recover: (workers, queues, release) =>
      inTransaction(async (run) => {
        // Held until the end: meanwhile no other worker recovers these, and no worker runs their calls.
        const found = await run(
          `select executor_id as id from unnest($1::text[]) as executor_id where ${isGone}`,
          [workers],
        );
        const callIds = idsIn(await run(running, [queues, idsIn(found)]));
        if (callIds.length === 0) return callIds;
        await release(callIds);
        await run(requeue, [callIds]);
        return callIds;
      }),
    handOver: async (callId) => {
      await query(left('workflow_uuid'), [callId]);
    },
    leave: async (worker) => {
      await query(left('executor_id'), [worker]);
    },
    adopt: async (version, ours) =>
      idsIn(await query(adopt, [versionOf(name, version), versionOf(name, ours), name])),
  };
};

/** A live worker holds the lock of its id. A statement takes it until its transaction ends. */
const isGone = `pg_try_advisory_xact_lock(hashtextextended(executor_id, ${lockSeed}))`;

const statementsOn = (status: string) => {
  const requeued = `status = case status when 'PENDING' then 'ENQUEUED' else status end, owner_xid = null,
      started_at_epoch_ms = null, updated_at = (extract(epoch from now()) * 1000)::bigint`;
  const others = `select distinct executor_id from ${status}
    where status = 'PENDING' and queue_name = any($1) and application_version = $2 and executor_id <> $3`;
  const gone = `select executor_id as id from (${others}) as other where ${isGone}`;
  /** The connection of a process that hangs stays open: it is closed if it was silent for too long. */
  const hanging = `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and state_change < clock_timestamp() - interval '${silentMs} milliseconds'
      and application_name in (select '${workerName('')}' || executor_id from (${others}) as other)`;
  const running = `select workflow_uuid as id from ${status}
    where status = 'PENDING' and queue_name = any($1) and executor_id = any($2) for update`;
  const requeue = `update ${status} set ${requeued} where workflow_uuid = any($1)`;
  /** Only workers that died count. */
  const uncounted = `recovery_attempts = greatest(0, recovery_attempts - 1)`;
  const left = (column: string): string =>
    `update ${status} set ${requeued}, ${uncounted} where status = 'PENDING' and ${column} = $1`;
  const adopt = `update ${status} set ${requeued}, ${uncounted}, application_version = $2
    where status in ('DELAYED', 'ENQUEUED', 'PENDING') and application_name = $3 and application_version = $1
      and (status <> 'PENDING' or ${isGone})
    returning workflow_uuid as id`;
  return { hanging, gone, running, requeue, left, adopt };
};
