import { isRecord } from 'millrace/values';
import type { WorkNotice } from '@millrace/dbos';

/** The settings of a worker. */
export interface WorkerOrders {
  /** Names the process. */
  readonly life: string;
  /** The database of the engine, and its schemas. */
  readonly url: string;
  readonly schema: string;
  readonly leaseMs: number;
  readonly recoverMs: number;
  /** Where effects are counted. */
  readonly effectsUrl: string;
  /** Between two chunks of a model, in milliseconds. */
  readonly chunkMs: number;
  /** Calls of an agent at the same time in a worker. */
  readonly concurrency: number;
  /** How long tools take, in milliseconds: from, up to. */
  readonly toolMs: readonly [number, number];
}

export const isWorkerOrders = (value: unknown): value is WorkerOrders =>
  isRecord(value) && typeof value['life'] === 'string' && typeof value['url'] === 'string';

/** A notice of the engine, as a channel between processes carries it. */
export type PlainNotice =
  | Exclude<WorkNotice, { readonly type: 'failed' }>
  | { readonly type: 'failed'; readonly callId: string; readonly message: string };

const types: readonly PlainNotice['type'][] = [
  'ready',
  'started',
  'ended',
  'failed',
  'recovered',
  'warning',
];

/** Whether a message is one of ours. */
export const isPlainNotice = (value: unknown): value is PlainNotice =>
  isRecord(value) && types.some((type) => type === value['type']);

export const plainNotice = (notice: WorkNotice): PlainNotice =>
  notice.type === 'failed'
    ? {
        type: 'failed',
        callId: notice.callId,
        message: `${notice.error.code}: ${notice.error.message}`,
      }
    : notice;

/** The options with which all processes of a run open the engine. */
export const engineOptions = ({ schema, leaseMs }: Pick<WorkerOrders, 'schema' | 'leaseMs'>) => ({
  schema: `${schema}_dbos`,
  // The server has few connections, and those of killed workers may take a moment to close.
  pool: { max: 3 },
  store: { schema, leaseMs, pool: { max: 3 } },
});
