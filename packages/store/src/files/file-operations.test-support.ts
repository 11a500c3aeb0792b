import { AsyncLocalStorage } from 'node:async_hooks';
import * as realSync from 'node:fs';
import * as real from 'node:fs/promises';
import { readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { jest } from '@jest/globals';

/** A process that a test plays: the operations on files that it has made, and what happens before each. */
export interface PlayedProcess {
  /** Name and path of each operation. */
  readonly operations: string[];
  /** When they began and ended. */
  readonly log?: string[];
  /** How many bytes it has written. */
  written?: number;
  /** Called before each operation that changes something. The process never continues if it resolves to false. */
  readonly before?: (operation: string) => Promise<boolean> | boolean;
  /** Delays an operation, also one that only reads. */
  readonly pause?: (operation: string) => Promise<void>;
  isDead?: boolean;
}

type Work = (...given: readonly unknown[]) => unknown;

const processes = new AsyncLocalStorage<PlayedProcess>();

/** Runs work as a process. Resolves to undefined if it is killed before the work is done. */
export const playProcess = <T>(
  played: PlayedProcess,
  work: () => Promise<T>,
): Promise<T | undefined> =>
  new Promise((resolve, reject) => {
    died.set(played, () => resolve(undefined));
    processes.run(played, () => void work().then(resolve, reject));
  });

const died = new Map<PlayedProcess, () => void>();

const kill = (played: PlayedProcess): void => {
  played.isDead = true;
  // The system closes the files of a process that is gone.
  for (const handle of handles.get(played) ?? []) void handle.close().catch(() => undefined);
  died.get(played)?.();
};

/** A process that is killed before its operation with this number, from 0, of those that change something. */
export const killedBefore = (number: number): PlayedProcess => {
  let count = -1;
  return { operations: [], before: () => (count += 1) < number };
};

const never = (): Promise<never> => new Promise(() => undefined);

const changing =
  /^(mkdir|writeFile|rename|unlink|rm|rmdir|utimes|link|open [wa]|write|append|sync|datasync|truncate)/;

const asynchronous =
  (name: string, work: Work) =>
  async (...given: readonly unknown[]): Promise<unknown> => {
    const played = processes.getStore();
    if (played === undefined) return work(...given);
    if (played.isDead === true) return never();
    const operation = note(played, name, given);
    await played.pause?.(operation);
    if (changing.test(operation) && (await played.before?.(operation)) === false) {
      kill(played);
      return never();
    }
    try {
      return await work(...given);
    } finally {
      played.log?.push(`end ${operation}`);
    }
  };

const synchronous =
  (name: string, work: Work): Work =>
  (...given) => {
    const played = processes.getStore();
    if (played === undefined) return work(...given);
    const operation = note(played, name, given);
    if (
      played.isDead !== true &&
      changing.test(operation) &&
      played.before?.(operation) === false
    ) {
      kill(played);
    }
    if (played.isDead === true) throw new Error('The process is dead.');
    return work(...given);
  };

const note = (played: PlayedProcess, name: string, given: readonly unknown[]): string => {
  const [path, flags] = given;
  if (/^(append|write|writeFile)$/.test(name) && typeof flags !== 'number') {
    played.written = (played.written ?? 0) + Buffer.byteLength(flags as string | Buffer);
  }
  const how = name === 'open' ? `open ${String(flags)}` : name;
  const operation = `${how} ${String(path)}`;
  played.operations.push(operation);
  played.log?.push(`begin ${operation}`);
  return operation;
};

const isWork = (value: unknown): value is Work => typeof value === 'function';

/** Handles of files count their operations with the path of the file. */
const watchedHandle = (path: string, handle: real.FileHandle): real.FileHandle => {
  const played = processes.getStore();
  if (played !== undefined) {
    handles.set(played, [...(handles.get(played) ?? []), handle]);
  }
  return new Proxy(handle, {
    get: (target, property: keyof real.FileHandle) => {
      const value: unknown = target[property];
      if (!isWork(value)) return value;
      const bound = value.bind(target) as Work;
      const name = names[String(property)];
      if (name === undefined) return bound;
      const counted = asynchronous(name, (_path, ...given) => bound(...given));
      return (...given: readonly unknown[]) => counted(path, ...given);
    },
  });
};

const handles = new Map<PlayedProcess, readonly real.FileHandle[]>();

const names: Readonly<Record<string, string>> = {
  ...{ appendFile: 'append', writeFile: 'write', write: 'write', read: 'read', stat: 'fstat' },
  ...{ sync: 'sync', datasync: 'datasync', truncate: 'truncate' },
};

/** Syncs of what was opened synchronously are counted with its path. */
const watchedSyncs = (): Pick<typeof realSync, 'openSync'> & {
  readonly fsync: (opened: number, done: realSync.NoParamCallback) => void;
} => {
  const paths = new Map<number, realSync.PathLike>();
  const sync = promisify(realSync.fsync);
  return {
    openSync: (path, ...given) => {
      const opened = realSync.openSync(path, ...given);
      paths.set(opened, path);
      return opened;
    },
    fsync: (opened, done) => {
      const counted = asynchronous('sync', () => sync(opened));
      counted(paths.get(opened)).then(() => done(null), done);
    },
  };
};

/** Loads a module whose operations on files are those of the process that runs it. */
export const loadPlayed = async <T>(load: () => Promise<T>): Promise<T> => {
  const promises = Object.fromEntries(
    Object.entries(real).map(([name, work]) => [
      name,
      isWork(work) && name !== 'open' ? asynchronous(name, work) : work,
    ]),
  );
  const open = async (path: string, ...given: readonly unknown[]) =>
    watchedHandle(path, (await (real.open as Work)(path, ...given)) as real.FileHandle);
  promises['open'] = asynchronous('open', open as Work);
  const watched = ['existsSync', 'statSync', 'renameSync', 'unlinkSync', 'rmdirSync'];
  const sync = {
    ...Object.fromEntries(
      Object.entries(realSync).map(([name, work]) => [
        name,
        isWork(work) && watched.includes(name) ? synchronous(name, work) : work,
      ]),
    ),
    ...watchedSyncs(),
  };
  jest.unstable_mockModule('node:fs/promises', () => promises);
  jest.unstable_mockModule('node:fs', () => sync);
  return load();
};

/** Has the locks and the staged files of this process be those of one that is gone. A lock may be released meanwhile. */
export const expireAll = async (root: string): Promise<void> => {
  const gone = (name: string): string => name.replace(/^(\w+)\.\d+\./, '$1.9999999.');
  for (const name of await readdir(root)) {
    const isLock = name.endsWith('.lock');
    if (!isLock && name !== '.aside') continue;
    for (const inner of await readdir(join(root, name)).catch((): string[] => [])) {
      await rename(join(root, name, inner), join(root, name, gone(inner))).catch(() => undefined);
    }
  }
};
