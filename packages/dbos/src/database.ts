import { randomBytes } from 'node:crypto';
import { type DBOSClient, Error as DbosError } from '@dbos-inc/dbos-sdk';
import { MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import {
  type Connection,
  type ConnectionOptions,
  idsIn,
  openConnection,
  topic,
} from './connection.js';
import { unknownCall } from './errors.js';
import { expiryOf, type Order, readOrder, versionOf } from './order.js';
import { recovery, type Recovery } from './recovery.js';
import { heldUntil, placeIn, sessionOrder, type SessionOrder } from './session-order.js';

/** The database of the engine: what DBOS keeps, read and changed where its own interface has no way to. */
export interface Database
  extends
    Pick<Connection, 'pool' | 'client' | 'presence$' | 'close'>,
    Pick<SessionOrder, 'start' | 'suspend' | 'answer'>,
    Recovery {
  readonly name: string;
  readonly schema: string;
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
  /** Some calls that have ended before a time, but for suspended ones without an answer. */
  over(olderThanMs: number): Promise<readonly string[]>;
  /** Removes workflows. Their calls stay in the store. */
  remove(callIds: readonly string[]): Promise<void>;
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

export const openDatabase = (options: ConnectionOptions): Database => {
  const { name, schema } = options;
  const { query, inTransaction, ...connection } = openConnection(options);
  const { client } = connection;
  const table = (of: string): string => `"${schema}"."${of}"`;
  const status = table('workflow_status');
  const notifications = table('notifications');
  const sessions = sessionOrder({ query, inTransaction, client }, name, status);
  return {
    ...connection,
    ...sessions,
    ...recovery({ query, inTransaction }, name, status),
    name,
    schema,
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
        `select message_uuid as id, message as text from ${notifications}
        where destination_uuid = $1 and topic = $2 and message_uuid <> all($3)
        order by created_at_epoch_ms, message_uuid`,
        [callId, topic, known],
      );
      return rows.map(({ id, text }) => ({ id: String(id), text: String(text) }));
    },
    retry: async (callId, { order }, version) => {
      await retry({ query, client, status, notifications, name }, order, version);
      await sessions.requeued(order);
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
    find: async (callId) => callIn(name, callId, await (await client()).getWorkflow(callId)),
    over: async (olderThanMs) =>
      idsIn(await query(overIn(status), [name, olderThanMs, expiryOf('')])),
    remove: async (callIds) => {
      await (await client()).deleteWorkflows([...callIds]);
    },
  };
};

/** The parts of the database in which a call is put back into its queue. */
interface RetriedIn extends Pick<Connection, 'query' | 'client'> {
  readonly name: string;
  readonly status: string;
  readonly notifications: string;
}

const retry = async (
  { query, client, name, status, notifications }: RetriedIn,
  order: Order,
  version: string | undefined,
): Promise<void> => {
  const { callId } = order;
  const [queueName, queuePartitionKey] = placeIn(name, order);
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
    const [row] = await query(`select status from ${status} where workflow_uuid = $1`, [callId]);
    if (row?.['status'] !== 'ENQUEUED' && row?.['status'] !== 'PENDING') throw error;
  }
};

const overIn = (status: string): string => `select workflow_uuid as id from ${status} as call
  where application_name = $1 and status not in ('DELAYED', 'ENQUEUED', 'PENDING')
  and completed_at <= (extract(epoch from now()) * 1000)::bigint - $2::bigint
  and not exists (
    select 1 from ${status} where workflow_uuid = call.workflow_uuid || $3
      and status in ('DELAYED', 'ENQUEUED', 'PENDING')
  )
  limit ${pageSize}`;

const pageSize = 500;

/** A workflow as a call of an engine; undefined for any other. */
const callIn = (
  name: string,
  callId: string,
  found: Awaited<ReturnType<DBOSClient['getWorkflow']>>,
): EngineCall | undefined => {
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
    failure: isRecord(error) && typeof error['message'] === 'string' ? error['message'] : undefined,
  };
};

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
