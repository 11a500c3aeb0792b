import { randomBytes } from 'node:crypto';
import { Error as DbosError } from '@dbos-inc/dbos-sdk';
import { MillraceError } from '@millrace/core';
import { isRecord } from '@millrace/core/values';
import {
  type Connection,
  type ConnectionOptions,
  lockSeed,
  openConnection,
  type Row,
  type Run,
  silentMs,
  topic,
  workerName,
} from './connection.js';
import { exists, unknownCall } from './errors.js';
import { expiryOf, nextCallId, type Order, readOrder, storedOrder } from './order.js';

/** Adds a workflow. `suspends` names the session that it marks as suspended; then one that is there stays. */
type Enqueue = (
  order: Order,
  when: StartTime & { readonly suspends?: string | undefined },
) => Promise<void>;

/** The database of the engine: what DBOS keeps, read and changed where its own interface has no way to. */
export interface Database extends Pick<Connection, 'pool' | 'client' | 'presence$' | 'close'> {
  readonly name: string;
  readonly schema: string;
  /** Adds a call to the queue of its agent, after the earlier calls of its session. Rejects with `conflict` if the id exists. */
  start(order: Order, when: StartTime): Promise<void>;
  /** Notes that a call of a session is suspended: later ones wait. `expiry` runs after its delay, or never. */
  suspend(order: Order, expiry: Order, when: StartTime): Promise<void>;
  /** Adds the call that continues a suspended one, before those that wait. Rejects with `conflict` if there is one. */
  answer(order: Order, next: Order, when: StartTime): Promise<void>;
  /** Sends a message to a call, also one that has ended. Rejects with `invalidResume` if there is no such call. */
  send(callId: string, message: object): Promise<void>;
  /** The messages of a call that are not known yet, in the order in which they were sent. */
  messages(callId: string, known: readonly string[]): Promise<readonly StoredMessage[]>;
  /** Puts a call that failed, was cancelled, or stopped too many workers back into its queue, with its messages. */
  retry(callId: string, call: EngineCall, version?: string): Promise<void>;
  /** The token of the run that owns a call: a new one each time that a worker takes it from its queue. */
  owner(callId: string): Promise<string | undefined>;
  /** Whether a call is in no queue and no worker runs it; undefined for an unknown one. */
  isOver(callId: string): Promise<boolean | undefined>;
  /** The call as DBOS knows it. */
  find(callId: string): Promise<EngineCall | undefined>;
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
  /** Some calls that have ended before a time, but for suspended ones without an answer. */
  over(olderThanMs: number): Promise<readonly string[]>;
  /** Removes workflows. Their calls stay in the store. */
  remove(callIds: readonly string[]): Promise<void>;
}

export interface StartTime {
  readonly delayMs?: number | undefined;
  readonly version?: string | undefined;
}

export interface StoredMessage {
  readonly id: string;
  readonly text: string;
}

export interface EngineCall {
  readonly status: EngineStatus;
  readonly order: Order;
  readonly version: string | undefined;
  /** Why its workflow failed. */
  readonly failure: string | undefined;
}

/** The states of a workflow in DBOS. */
export type EngineStatus =
  | 'DELAYED'
  | 'ENQUEUED'
  | 'PENDING'
  | 'SUCCESS'
  | 'ERROR'
  | 'CANCELLED'
  | 'MAX_RECOVERY_ATTEMPTS_EXCEEDED';

export interface Worker {
  readonly id: string;
  readonly version: string;
}

/** Versions of DBOS are unique over all names. Workers without a version share one. */
export const versionOf = (name: string, version = ''): string => `${name}/${version}`;

/** The queue of an agent. */
export const queueOf = (name: string, agent: string): string => `${name}/${agent}`;

export const openDatabase = (options: ConnectionOptions): Database => {
  const { name, schema } = options;
  const { query, inTransaction, ...connection } = openConnection(options);
  const { client } = connection;
  const table = (of: string): string => `"${schema}"."${of}"`;
  const status = table('workflow_status');
  /** In a partition, DBOS orders by the millisecond of the start: two starts must not share one. */
  const ofSamePlace = `queue_name = $2 and queue_partition_key = $3 and workflow_uuid <> $1 and (
      status in ('ENQUEUED', 'PENDING') or status = 'DELAYED' and delay_until_epoch_ms = ${heldUntil}
    )`;
  /** Workers pass over calls of other versions: a session stays on that of its unfinished calls. */
  const inOrder = `update ${status} set
      created_at = greatest(created_at, 1 + coalesce((
        select max(created_at) from ${status} where ${ofSamePlace}
      ), 0)),
      application_version = coalesce((
        select application_version from ${status} where ${ofSamePlace} order by created_at desc limit 1
      ), application_version)
    where workflow_uuid = $1`;
  const inFront = `update ${status} set created_at = (
      select created_at from ${status} where workflow_uuid = $2
    ) where workflow_uuid = $1`;
  /** The waiting end of a suspended call marks its session. */
  const marked = `select 1 from ${status} where queue_name = $1 and deduplication_id = $2`;
  const unmark = `update ${status} set deduplication_id = null where workflow_uuid = $1`;
  /** Waiting calls of a suspended session are delayed until it has its answer. Their own delay is kept in a field that DBOS uses for others. */
  const held = `status = 'DELAYED', debounce_deadline_epoch_ms = delay_until_epoch_ms,
      delay_until_epoch_ms = ${heldUntil}`;
  const isWaiting = `(status = 'ENQUEUED' or status = 'DELAYED' and delay_until_epoch_ms < ${heldUntil})`;
  const holdOthers = `update ${status} set ${held}
    where queue_name = $1 and queue_partition_key = $2 and workflow_uuid <> $3 and ${isWaiting}`;
  const hold = `update ${status} set ${held} where workflow_uuid = $1 and ${isWaiting}`;
  /** They stay on the version of the answer: it may be long after a deploy. */
  const letGo = `update ${status} set
      status = case when debounce_deadline_epoch_ms is null then 'ENQUEUED' else 'DELAYED' end,
      delay_until_epoch_ms = debounce_deadline_epoch_ms, debounce_deadline_epoch_ms = null,
      application_version = (select application_version from ${status} where workflow_uuid = $3)
    where queue_name = $1 and queue_partition_key = $2 and status = 'DELAYED' and delay_until_epoch_ms = ${heldUntil}`;
  const over = `select workflow_uuid as id from ${status} as call
    where application_name = $1 and status not in ('DELAYED', 'ENQUEUED', 'PENDING')
      and completed_at <= (extract(epoch from now()) * 1000)::bigint - $2::bigint
      and not exists (
        select 1 from ${status} where workflow_uuid = call.workflow_uuid || $3
          and status in ('DELAYED', 'ENQUEUED', 'PENDING')
      )
    limit ${pageSize}`;
  const placeOf = ({ agent, sessionId, callId }: Order): readonly [string, string] => [
    queueOf(name, agent),
    sessionId ?? callId,
  ];
  /** Runs work that no other change of the same session can interleave with. */
  const ofSession = async (
    { agent, sessionId, callId }: Order,
    work: (run: Run, enqueue: Enqueue) => Promise<void>,
  ): Promise<void> => {
    const dbos = await client();
    let enqueued = callId;
    try {
      await inTransaction(async (run, connection) => {
        if (sessionId !== undefined) {
          const key = JSON.stringify([queueOf(name, agent), sessionId]);
          await run('select pg_advisory_xact_lock(hashtextextended($1, $2))', [key, lockSeed]);
        }
        await work(run, async (order, { delayMs, version, suspends }) => {
          enqueued = order.callId;
          const [queueName, queuePartitionKey] = placeOf(order);
          await dbos.enqueueInTransaction(
            connection,
            {
              queueName,
              queuePartitionKey,
              workflowName: order.agent,
              workflowID: order.callId,
              workflowIDReusePolicy: suspends === undefined ? 'reject' : 'return-existing',
              serializationType: 'portable',
              ...(version === undefined ? {} : { appVersion: versionOf(name, version) }),
              ...(delayMs === undefined ? {} : { delaySeconds: delayMs / 1_000 }),
              ...(suspends === undefined ? {} : { deduplicationID: suspends }),
            },
            storedOrder(order),
          );
        });
      });
    } catch (error) {
      throw DbosError.isWorkflowIDInUseError(error) ? exists(enqueued) : error;
    }
  };
  /** A live worker holds the lock of its id. A statement takes it until its transaction ends. */
  const isGone = `pg_try_advisory_xact_lock(hashtextextended(executor_id, ${lockSeed}))`;
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
  return {
    ...connection,
    name,
    schema,
    start: (order, when) =>
      ofSession(order, async (run, enqueue) => {
        const { callId, sessionId } = order;
        const place = [callId, ...placeOf(order)];
        if (sessionId === undefined) return enqueue(order, when);
        const isSuspended = (await run(marked, [place[1], sessionId])).length > 0;
        await enqueue(order, when);
        await run(inOrder, place);
        if (isSuspended) await run(hold, [callId]);
      }),
    suspend: (order, expiry, { delayMs, version }) =>
      ofSession(order, async (run, enqueue) => {
        const answered = await run(`select 1 from ${status} where workflow_uuid = $1`, [
          nextCallId(order.callId),
        ]);
        if (answered.length > 0) return;
        const [queueName] = placeOf(order);
        const others = await run(`${marked} and workflow_uuid <> $3`, [
          queueName,
          order.sessionId,
          expiry.callId,
        ]);
        if (others.length === 0) {
          await enqueue(expiry, { delayMs: delayMs ?? 0, version, suspends: order.sessionId });
        }
        if (delayMs === undefined) await run(hold, [expiry.callId]);
        await run(holdOthers, [...placeOf(order), order.callId]);
      }),
    answer: (order, next, when) =>
      ofSession(order, async (run, enqueue) => {
        await enqueue(next, when);
        await run(inFront, [next.callId, order.callId]);
        await run(unmark, [expiryOf(order.callId)]);
        await run(
          `delete from ${status} where workflow_uuid = $1 and status in ('DELAYED', 'ENQUEUED')`,
          [expiryOf(order.callId)],
        );
        await run(letGo, [...placeOf(order), next.callId]);
      }),
    send: async (callId, message) => {
      try {
        await (
          await client()
        ).send(callId, message, topic, nextId(), { serializationType: 'portable' });
      } catch (error) {
        throw error instanceof DbosError.DBOSNonExistentWorkflowError ? unknownCall(callId) : error;
      }
    },
    messages: async (callId, known) => {
      const rows = await query(
        `select message_uuid as id, message as text from ${table('notifications')}
        where destination_uuid = $1 and topic = $2 and message_uuid <> all($3)
        order by created_at_epoch_ms, message_uuid`,
        [callId, topic, known],
      );
      return rows.map(({ id, text }) => ({ id: String(id), text: String(text) }));
    },
    retry: async (callId, { order }, version) => {
      const [queueName, queuePartitionKey] = placeOf(order);
      const notifications = table('notifications');
      // An interrupt has had its effect. A rewind removes what it takes for messages that were not consumed.
      await query(
        `delete from ${notifications} where destination_uuid = $1 and topic = $2 and message like '{"kind":"interrupt"%'`,
        [callId, topic],
      );
      await query(
        `update ${notifications} set consumed = true where destination_uuid = $1 and topic = $2`,
        [callId, topic],
      );
      const dbos = await client();
      try {
        await dbos.rewindWorkflow(callId, {
          startStep: 0,
          queueName,
          queuePartitionKey,
          applicationVersion: versionOf(name, version),
        });
      } catch (error) {
        // Another request was faster.
        const [row] = await query(`select status from ${status} where workflow_uuid = $1`, [
          callId,
        ]);
        if (row?.['status'] !== 'ENQUEUED' && row?.['status'] !== 'PENDING') throw error;
      }
      const isSuspended = (await query(marked, [queueName, queuePartitionKey])).length > 0;
      if (order.sessionId !== undefined && isSuspended) await query(hold, [callId]);
    },
    owner: async (callId) => {
      const [row] = await query(
        `select owner_xid as token from ${status} where workflow_uuid = $1 and status = 'PENDING'`,
        [callId],
      );
      return typeof row?.['token'] === 'string' ? row['token'] : undefined;
    },
    isOver: async (callId) => {
      const [row] = await query(
        `select status not in ('DELAYED', 'ENQUEUED', 'PENDING') as over from ${status}
        where workflow_uuid = $1 and application_name = $2`,
        [callId, name],
      );
      return row === undefined ? undefined : row['over'] === true;
    },
    find: async (callId) => {
      const found = await (await client()).getWorkflow(callId);
      if (found?.applicationName !== name) return undefined;
      const { status, applicationVersion, input, error, delayUntilEpochMS } = found;
      const order = readOrder(callId, input?.[0]);
      // The end of a wait is no call.
      if (order.expires !== undefined) return undefined;
      return {
        status: delayUntilEpochMS === heldUntil ? 'ENQUEUED' : statusOf(status),
        order,
        version:
          applicationVersion === versionOf(name)
            ? undefined
            : // DBOS gives null before the first worker.
              applicationVersion?.slice(name.length + 1),
        failure:
          isRecord(error) && typeof error['message'] === 'string' ? error['message'] : undefined,
      };
    },
    over: async (olderThanMs) => idsIn(await query(over, [name, olderThanMs, expiryOf('')])),
    remove: async (callIds) => {
      await (await client()).deleteWorkflows([...callIds]);
    },
    gone: async ({ id, version }, queues) => {
      await query(hanging, [queues, version, id]);
      return idsIn(await query(gone, [queues, version, id]));
    },
    recover: (workers, queues, release) =>
      inTransaction(async (run) => {
        // Held until the end: meanwhile no other worker recovers these, and no worker runs their calls.
        const gone = await run(
          `select executor_id as id from unnest($1::text[]) as executor_id where ${isGone}`,
          [workers],
        );
        const callIds = idsIn(await run(running, [queues, idsIn(gone)]));
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

/** The end of the year 9999, in milliseconds: the time of what waits for an answer. */
const heldUntil = 253_402_300_799_000;

const pageSize = 500;

const idsIn = (rows: readonly Row[]): readonly string[] => rows.map(({ id }) => String(id));

const statuses: readonly EngineStatus[] = [
  ...(['DELAYED', 'ENQUEUED', 'PENDING', 'SUCCESS', 'ERROR', 'CANCELLED'] as const),
  'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
];

const statusOf = (given: string): EngineStatus => {
  const known = statuses.find((status) => status === given);
  if (known !== undefined) return known;
  throw new MillraceError('invalidState', `DBOS reports a status that is not known: '${given}'.`);
};

/** Ids of one sender sort in the order of their creation, also within a millisecond. */
const nextId = (() => {
  let count = 0;
  return (): string => {
    count += 1;
    const at = Date.now().toString(36).padStart(9, '0');
    return `${at}-${count.toString(36).padStart(7, '0')}-${randomBytes(6).toString('hex')}`;
  };
})();

export const isOver = ({ status }: EngineCall): boolean =>
  !['DELAYED', 'ENQUEUED', 'PENDING'].includes(status);
