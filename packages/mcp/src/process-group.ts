import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { Socket } from 'node:net';
import process from 'node:process';
import {
  defer,
  EMPTY,
  finalize,
  interval,
  map,
  type Observable,
  takeUntil,
  takeWhile,
  timer,
} from 'rxjs';

const isWindows = process.platform === 'win32';

/** Sends a signal to a child process that leads a group, and to all that it has started. */
export const signalGroup = ({ pid }: Pick<ChildProcess, 'pid'>, signal: NodeJS.Signals): void => {
  if (pid === undefined) return;
  if (isWindows) {
    spawnSync('taskkill', ['/pid', String(pid), '/T', '/F'], { windowsHide: true });
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has ended.
  }
};

/** Whether a process of the group of a child process still runs. */
const runsGroup = ({ pid }: Pick<ChildProcess, 'pid'>): boolean => {
  try {
    return !isWindows && pid !== undefined && process.kill(-pid, 0);
  } catch {
    return false;
  }
};

const pollMs = 100;

/** Ends the processes that a child process left running: with SIGTERM, and later with SIGKILL. */
export const endGroup$ = (child: ChildProcess, politeMs: number): Observable<unknown> =>
  defer(() => {
    if (!runsGroup(child)) return EMPTY;
    signalGroup(child, 'SIGTERM');
    return interval(pollMs).pipe(
      map(() => runsGroup(child)),
      takeWhile((isRunning) => isRunning),
      takeUntil(timer(politeMs)),
      finalize(() => signalGroup(child, 'SIGKILL')),
    );
  });

/**
 * Reads `+ <group>` and `- <group>`. The end of its input is the end of the process that wrote them, for any reason:
 * then it ends the groups that are left. A signal handler would change how the program ends, and SIGKILL calls none.
 */
const script = `groups=
while read -r sign group; do
  left=
  for each in $groups; do [ "$each" = "$group" ] || left="$left $each"; done
  groups=$left
  [ "$sign" = - ] || groups="$groups $group"
done
[ -n "$groups" ] || exit 0
for each in $groups; do kill -s TERM -- "-$each"; done
sleep 1
for each in $groups; do kill -s KILL -- "-$each"; done`;

type Watching = (line: string) => void;

/** The child processes of this process. One shell watches over all of them, and ends with the last. */
const children = new Set<ChildProcess>();
let watching: Watching | undefined;

/** Ends a child process and what it has started when this process ends. Returns a function that calls this off. */
export const endWithProcess = (child: ChildProcess): (() => void) => {
  if (child.pid === undefined) return () => undefined;
  const { pid } = child;
  children.add(child);
  watching ??= isWindows ? onExit() : watch();
  watching(`+ ${pid}\n`);
  return () => {
    if (!children.delete(child)) return;
    watching?.(`- ${pid}\n`);
    if (children.size === 0) stop();
  };
};

let stop: () => void = () => undefined;

/** Start a session of its own, so Ctrl+C in the terminal does not reach it. */
const watch = (): Watching => {
  const shell = spawn('/bin/sh', ['-c', script], {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  // Do not keep the program running.
  shell.unref();
  if (shell.stdin instanceof Socket) shell.stdin.unref();
  const instead = (): void => {
    if (watching === write) watching = onExit();
  };
  shell.on('error', instead);
  shell.stdin.on('error', instead);
  const write = (line: string): void => void shell.stdin.write(line);
  stop = () => {
    watching = undefined;
    shell.stdin.end();
  };
  return write;
};

/** Without a shell, the end of the program is noticed, except if a signal ends it. */
const onExit = (): Watching => {
  const end = (): void => children.forEach((child) => signalGroup(child, 'SIGKILL'));
  process.on('exit', end);
  stop = () => {
    watching = undefined;
    process.off('exit', end);
  };
  return () => undefined;
};
