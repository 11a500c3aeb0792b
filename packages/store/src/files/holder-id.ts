import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { errorCode } from './file-system.js';

export type ProcessStatus = 'alive' | 'gone' | 'unknown';

/** Does not change while the process runs. */
let own: string | undefined;

/** A unique id that identifies this process: machine, process id, start time and a UUID. */
export const newHolderId = (): string => {
  own ??= [machine() ?? 'any', process.pid, readProcess(process.pid)?.start ?? 0].join('.');
  return `${own}.${randomUUID()}`;
};

export const isHolderId = (name: string): boolean => pattern.test(name);

/**
 * The status of the process that a holder id names. Known only on Linux, for processes of the same boot and the same
 * PID namespace; a process is identified by its id and start time, as ids are reused. For ids of this very process the
 * status is unknown, as another of its threads may be the holder.
 */
export const processStatus = (name: string): ProcessStatus => {
  const [, where, id, start] = pattern.exec(name) ?? [];
  if (where === undefined || where !== machine() || Number(id) === process.pid) return 'unknown';
  if (!isRunning(Number(id))) return 'gone';
  const seen = readProcess(Number(id));
  if (seen === undefined) return 'unknown';
  return seen.start === start && !seen.hasExited ? 'alive' : 'gone';
};

const pattern = /^([0-9a-f]{16}|any)\.(\d+)\.(\d+)\.[0-9a-f-]{36}$/;

/** Identifies the current boot and PID namespace; undefined on systems without `/proc`. */
const machine = (): string | undefined => {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const seen = readlinkSync('/proc/self/ns/pid');
    return createHash('sha256').update(`${boot} ${seen}`).digest('hex').slice(0, 16);
  } catch {
    return undefined;
  }
};

const isRunning = (id: number): boolean => {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return errorCode(error) !== 'ESRCH';
  }
};

interface ProcessInfo {
  /** In clock ticks since boot. */
  readonly start: string;
  /** A zombie: it has ended, and its parent has not collected the exit status. */
  readonly hasExited: boolean;
}

/** Reads `/proc/<id>/stat`: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
const readProcess = (id: number): ProcessInfo | undefined => {
  try {
    const text = readFileSync(`/proc/${id}/stat`, 'utf8');
    // The program name, in parentheses, may contain spaces and parentheses itself.
    const [state = '', ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const start = fields[18];
    return start === undefined ? undefined : { start, hasExited: /[ZXx]/.test(state) };
  } catch {
    return undefined;
  }
};
