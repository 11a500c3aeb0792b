import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { codeOf } from './failure.js';

/** What is known of the process that a name tells of. */
export type Life = 'alive' | 'gone' | 'unknown';

/** A name that no other one has, and that tells which process has it. */
export const newHolder = (): string =>
  [machine() ?? 'any', process.pid, found(process.pid)?.start ?? 0, randomUUID()].join('.');

/** Tells whether a text is such a name. */
export const isHolder = (name: string): boolean => pattern.test(name);

/**
 * Tells whether the process lives that has given itself a name. It is known of processes that are seen from here, on Linux: a process is its number and the moment of its start, on one machine since
 * one start of that, and in one container. This process may have other threads, of which nothing is known.
 */
export const lifeOf = (name: string): Life => {
  const [, where, id, start] = pattern.exec(name) ?? [];
  if (where === undefined || where !== machine() || Number(id) === process.pid) return 'unknown';
  if (!isThere(Number(id))) return 'gone';
  const seen = found(Number(id));
  if (seen === undefined) return 'unknown';
  return seen.start === start && !seen.isOver ? 'alive' : 'gone';
};

const pattern = /^([0-9a-f]{16}|any)\.(\d+)\.(\d+)\.[0-9a-f-]{36}$/;

/** Names the machine, since it was started, and what of its processes is seen; nothing, where that is not told. */
const machine = (): string | undefined => {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const seen = readlinkSync('/proc/self/ns/pid');
    return createHash('sha256').update(`${boot} ${seen}`).digest('hex').slice(0, 16);
  } catch {
    return undefined;
  }
};

const isThere = (id: number): boolean => {
  try {
    process.kill(id, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
};

interface FoundProcess {
  /** In ticks since the start of the machine. */
  readonly start: string;
  /** One that has ended, and whose parent has not asked for its end, is still there. */
  readonly isOver: boolean;
}

/** What Linux says of a process: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
const found = (id: number): FoundProcess | undefined => {
  try {
    const text = readFileSync(`/proc/${id}/stat`, 'utf8');
    // The name of the program, in brackets, may hold anything.
    const [state = '', ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const start = fields[18];
    return start === undefined ? undefined : { start, isOver: /[ZXx]/.test(state) };
  } catch {
    return undefined;
  }
};
