import { Error as DbosError } from '@dbos-inc/dbos-sdk';
import { type Connection, lockSeed, type Run } from './connection.js';
import { exists } from './errors.js';
import {
  expiryOf,
  nextCallId,
  type Order,
  queueOf,
  type StartTime,
  storedOrder,
  versionOf,
} from './order.js';

/** The order of the calls of a session: one runs at a time, and a suspended one holds the later ones until it has its answer. */
export interface SessionOrder {
  /** Adds a call to the queue of its agent, after the earlier calls of its session. Rejects with `conflict` if the id exists. */
  start(order: Order, when: StartTime): Promise<void>;
  /** Notes that a call of a session is suspended: later ones wait. `expiry` runs after its delay, or never. */
  suspend(order: Order, expiry: Order, when: StartTime): Promise<void>;
  /** Adds the call that continues a suspended one, before those that wait. Rejects with `conflict` if there is one. */
  answer(order: Order, next: Order, when: StartTime): Promise<void>;
  /** Holds a call that is queued again, if its session is suspended. */
  requeued(order: Order): Promise<void>;
}

/** The end of the year 9999, in milliseconds: the time of what waits for an answer. */
export const heldUntil = 253_402_300_799_000;

export const sessionOrder = (
  connection: Pick<Connection, 'query' | 'inTransaction' | 'client'>,
  name: string,
  status: string,
): SessionOrder => {
  const { query } = connection;
  const { inOrder, inFront, marked, unmark, hold, holdOthers, letGo } = statementsOn(status);
  const placeOf = (order: Order): readonly [string, string] => placeIn(name, order);
  const ofSession = (order: Order, work: SessionWork): Promise<void> =>
    alone(connection, name, order, work);
  return {
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
    requeued: async ({ callId, sessionId, ...order }) => {
      if (sessionId === undefined) return;
      const place = placeOf({ callId, sessionId, ...order });
      if ((await query(marked, place)).length > 0) await query(hold, [callId]);
    },
  };
};

const statementsOn = (status: string) => {
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
  return { inOrder, inFront, marked, unmark, hold, holdOthers, letGo };
};

export const placeIn = (
  name: string,
  { agent, sessionId, callId }: Order,
): readonly [queue: string, partition: string] => [queueOf(name, agent), sessionId ?? callId];

/** Adds a workflow. `suspends` names the session that it marks as suspended; then one that is there stays. */
type Enqueue = (
  order: Order,
  when: StartTime & { readonly suspends?: string | undefined },
) => Promise<void>;

type SessionWork = (run: Run, enqueue: Enqueue) => Promise<void>;

/** Runs work that no other change of the same session can interleave with. */
const alone = async (
  { client, inTransaction }: Pick<Connection, 'client' | 'inTransaction'>,
  name: string,
  { agent, sessionId, callId }: Order,
  work: SessionWork,
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
        const [queueName, queuePartitionKey] = placeIn(name, order);
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
