import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import pg from 'pg';
import { isPlainNotice, type PlainNotice, type WorkerOrders } from './orders.js';

export type WorkerState = 'starting' | 'ready' | 'stopped' | 'draining' | 'gone';

/** A process that runs calls. */
export interface FleetWorker {
  readonly life: string;
  readonly state: WorkerState;
  /** The calls that it runs, by its notices. */
  readonly running: ReadonlySet<string>;
}

/** The workers of a run. */
export interface Fleet {
  readonly workers: readonly FleetWorker[];
  /** Workers that ended by themselves, and unexpected notices of the others. */
  readonly wrongs: readonly string[];
  readonly warnings: readonly string[];
  readonly recovered: number;
  readonly failures: readonly Extract<PlainNotice, { readonly type: 'failed' }>[];
  start(): void;
  /** Kills a worker with SIGKILL. */
  kill(worker: FleetWorker): void;
  /** Has a worker end after the running steps. */
  drain(worker: FleetWorker): void;
  /** Stops a worker with SIGSTOP. If it is cut, the others take it for dead, as if it had lost its network. */
  stop(worker: FleetWorker, isCut: boolean): Promise<void>;
  /** Lets it run again. */
  go(worker: FleetWorker): void;
  /** Drains all workers, and kills those that do not end within some seconds. */
  close(): Promise<void>;
  /** Kills all workers that would outlive a process that ends immediately. */
  readonly abandon: () => void;
}

interface Member extends FleetWorker {
  state: WorkerState;
  readonly running: Set<string>;
  readonly child: ChildProcess;
  workerId?: string;
}

/** Opens a fleet without workers. `program` is their file, and `orders` are their settings. */
export const openFleet = (
  program: string,
  orders: Omit<WorkerOrders, 'life'>,
  onNotice: (notice: PlainNotice, worker: FleetWorker) => void = () => undefined,
): Fleet => {
  const members: Member[] = [];
  const wrongs: string[] = [];
  const warnings: string[] = [];
  const failures: Extract<PlainNotice, { readonly type: 'failed' }>[] = [];
  let recovered = 0;
  let count = 0;
  const hear = (notice: PlainNotice, member: Member): void => {
    switch (notice.type) {
      case 'ready':
        member.workerId = notice.worker;
        if (member.state === 'starting') member.state = 'ready';
        break;
      case 'started':
        member.running.add(notice.callId);
        break;
      case 'failed':
        failures.push(notice);
        member.running.delete(notice.callId);
        break;
      case 'ended':
        member.running.delete(notice.callId);
        break;
      case 'recovered':
        recovered += notice.callIds.length;
        break;
      case 'warning':
        warnings.push(`${member.life}: ${notice.message}`);
        break;
    }
    onNotice(notice, member);
  };
  const own = (worker: FleetWorker): Member | undefined =>
    members.find(({ life }) => life === worker.life);
  return {
    get workers() {
      return members.filter(({ state }) => state !== 'gone');
    },
    get recovered() {
      return recovered;
    },
    wrongs,
    warnings,
    failures,
    start: () => {
      count += 1;
      const life = `w${count}`;
      const child = fork(program, { execArgv: [] });
      const member: Member = { life, child, state: 'starting', running: new Set() };
      members.push(member);
      child.on('message', (message) => {
        if (isPlainNotice(message)) hear(message, member);
      });
      child.once('exit', (code, signal) => {
        const isExpected = signal === 'SIGKILL' || (code === 0 && member.state === 'draining');
        if (!isExpected) wrongs.push(`${life} has ended by itself (${signal ?? String(code)})`);
        member.state = 'gone';
      });
      child.send({ ...orders, life });
    },
    kill: (worker) => {
      const member = own(worker);
      if (member === undefined) return;
      member.state = 'gone';
      member.child.kill('SIGKILL');
    },
    drain: (worker) => {
      const member = own(worker);
      if (member === undefined) return;
      member.state = 'draining';
      member.child.kill('SIGTERM');
    },
    stop: async (worker, isCut) => {
      const member = own(worker);
      if (member === undefined) return;
      member.state = 'stopped';
      member.child.kill('SIGSTOP');
      if (!isCut || member.workerId === undefined) return;
      await cut(orders.url, member.workerId).catch((error: unknown) => {
        wrongs.push(`${member.life} was not cut: ${String(error)}`);
      });
    },
    go: (worker) => {
      const member = own(worker);
      if (member?.state !== 'stopped') return;
      member.state = 'ready';
      member.child.kill('SIGCONT');
    },
    close: async () => {
      const left = members.filter(({ state }) => state !== 'gone');
      await Promise.all(
        left.map(async (member) => {
          const { child } = member;
          if (child.exitCode !== null || child.signalCode !== null) return;
          if (member.state === 'stopped') child.kill('SIGCONT');
          const isStarting = member.state === 'starting';
          member.state = 'draining';
          const ended = once(child, 'exit');
          // One that starts does not listen to the signal yet.
          child.kill(isStarting ? 'SIGKILL' : 'SIGTERM');
          const limit = setTimeout(() => {
            wrongs.push(`${member.life} did not drain`);
            child.kill('SIGKILL');
          }, drainLimitMs);
          await ended;
          clearTimeout(limit);
        }),
      );
    },
    abandon: () => {
      for (const { child } of members) {
        if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      }
    },
  };
};

const drainLimitMs = 30_000;

/** Ends the connection by which others see that a worker is alive. */
const cut = async (url: string, workerId: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1',
      [`millrace ${workerId}`],
    );
  } finally {
    await client.end();
  }
};
