import { statSync } from 'node:fs';
import { getuid } from 'node:process';
import { MillraceError } from 'millrace';
import { checkOptions, isText, type Rule, wholeNumber } from 'millrace/values';
import type { Sandbox } from '../file-system.js';
import {
  type Owner,
  type ProgramOptions,
  programRules,
  programSandbox,
} from './program-sandbox.js';

/** Options of `bubblewrap`. `memoryMb` limits each process, by its address space. */
export interface BubblewrapOptions extends ProgramOptions {
  /** The maximum size of a file that code writes, in MiB. The directory itself has no limit. Default: 64. */
  readonly maxFileMb?: number | undefined;
  /** The path of bubblewrap 0.8 or later. Default: `/usr/bin/bwrap`. */
  readonly program?: string | undefined;
}

/**
 * Creates a sandbox for Python 3 on Linux, by bubblewrap. Code runs in namespaces of its own, without network, privileges and
 * environment: it sees `/usr` (read-only), no `/proc`, an empty `/tmp`, and the directory of the files, as `/work`. Unsubscribing kills
 * all of its processes. It needs user namespaces, and `python3`, `prlimit` and `setpriv` in `/usr/bin`: an error names what is
 * missing. If this process is root, code runs as the owner of the directory, who must not be root.
 * The kernel is shared, and system calls are not filtered: for hostile users, run all of it in a virtual machine.
 */
export const bubblewrap = (options: BubblewrapOptions): Sandbox => {
  checkOptions('bubblewrap()', options, rules, ['directory']);
  const { program = '/usr/bin/bwrap' } = options;
  const owner = ownerOf(options.directory, 'bubblewrap()');
  return programSandbox(options, {
    language:
      `Python 3 with its standard library; the files are in the working directory${networkOf(options)}. ` +
      'Nothing but files is kept between runs.',
    program: owner === undefined ? program : '/usr/bin/setpriv',
    owner,
    environment: [],
    launch: (code, directory) => {
      const args = [...namespaces(options, code, directory), '--', ...limited(options)];
      return owner === undefined ? { args } : { args: [...asUser(owner), program, ...args] };
    },
    check: (text, exitCode) => {
      const isOfCode = exitCode !== 1 && exitCode !== 127;
      if (isOfCode || !/^(?:bwrap|setpriv): /mu.test(text)) return;
      throw new Error(
        `The sandbox cannot start. bubblewrap() needs bubblewrap 0.8 or later, user namespaces, python3 and prlimit. It reports: ${text.slice(0, 500)}`,
      );
    },
  });
};

const rules: Readonly<Record<keyof BubblewrapOptions, Rule>> = {
  ...programRules,
  maxFileMb: wholeNumber(1),
  program: isText,
};

/**
 * The owner of the directory, if this process is root. Limits of processes do not apply to root, and the kernel lets root
 * write to more than a sandbox has: code runs as another user, or not at all.
 */
export const ownerOf = (directory: string, who: string): Owner | undefined => {
  if (getuid?.() !== 0) return undefined;
  const { uid, gid } = statSync(directory, { throwIfNoEntry: false }) ?? { uid: 1, gid: 1 };
  if (uid !== 0) return { uid, gid };
  throw new MillraceError(
    'config',
    `${who} runs no code as root. Run the process as another user, or change the owner of the directory: chown 65534:65534 '${directory}'.`,
  );
};

const asUser = ({ uid, gid }: Owner): readonly string[] => [
  ...['--reuid', `${uid}`, '--regid', `${gid}`, '--clear-groups', '--no-new-privs', '--'],
];

export const networkOf = ({ network = false }: ProgramOptions): string =>
  network ? '' : ', and there is no network';

const tmpBytes = String(64 * 2 ** 20);

const namespaces = (
  { network = false }: BubblewrapOptions,
  code: string,
  directory: string,
): readonly string[] => [
  ...['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--new-session'],
  ...['--cap-drop', 'ALL', '--uid', '1000', '--gid', '1000', '--hostname', 'sandbox'],
  ...['--clearenv', '--setenv', 'PATH', '/usr/bin', '--setenv', 'HOME', '/tmp'],
  ...['--setenv', 'LANG', 'C.UTF-8', '--setenv', 'PYTHONUNBUFFERED', '1'],
  ...['--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin'],
  ...['--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64'],
  ...['--dev', '/dev', '--size', tmpBytes, '--tmpfs', '/tmp'],
  ...(network ? networked : []),
  ...['--bind', directory, '/work', '--ro-bind', code, '/code.py', '--chdir', '/work'],
  // They are in memory, without a limit.
  ...['--remount-ro', '/dev', '--remount-ro', '/'],
];

const networked: readonly string[] = [
  '--share-net',
  ...['/etc/resolv.conf', '/etc/hosts', '/etc/ssl'].flatMap((path) => [
    '--ro-bind-try',
    path,
    path,
  ]),
];

const limited = ({
  memoryMb = 512,
  maxProcesses = 64,
  maxFileMb = 64,
}: BubblewrapOptions): readonly string[] => [
  '/usr/bin/prlimit',
  `--as=${memoryMb * 2 ** 20}`,
  `--fsize=${maxFileMb * 2 ** 20}`,
  `--nproc=${maxProcesses}`,
  '--core=0',
  ...['--', '/usr/bin/python3', '-B', '/code.py'],
];
