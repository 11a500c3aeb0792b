import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { getgid, getuid } from 'node:process';
import { MillraceError } from 'millrace';
import { noop } from 'rxjs';
import { checkOptions, isText, type Rule } from 'millrace/values';
import type { Sandbox } from '../file-system.js';
import { networkOf, ownerOf } from './bubblewrap.js';
import {
  type Owner,
  type ProgramOptions,
  programRules,
  programSandbox,
} from './program-sandbox.js';

/** Options of `docker`. `memoryMb` limits the container. */
export interface DockerOptions extends ProgramOptions {
  /** The image, such as `python:3.13-slim`. It must be there: nothing is pulled. */
  readonly image: string;
  /** The program that runs the code, whose file is its last argument. Default: `['python3', '-B']`. */
  readonly command?: readonly string[] | undefined;
  /** The language and what code may use, for the model. Default: that of Python 3. */
  readonly language?: string | undefined;
  /** The client. Default: `docker`. */
  readonly program?: string | undefined;
}

/**
 * Creates a sandbox that runs code in a new container for each run, by the command line of Docker: without network and
 * capabilities, with a read-only image, as the user of this process, with the directory of the files as `/work`. If this
 * process is root, code runs as the owner of the directory, who must not be root. The real path of the directory must not
 * have a comma or a quote, which separate options of a mount.
 * Unsubscribing removes the container. The container gets no environment variables of this process.
 */
export const docker = (options: DockerOptions): Sandbox => {
  checkOptions('docker()', options, rules, ['directory', 'image']);
  const { program = 'docker', image, command = ['python3', '-B'] } = options;
  const owner = ownerOf(options.directory, 'docker()');
  const language = `Python 3; the files are in the working directory${networkOf(options)}. Nothing but files is kept between runs.`;
  return programSandbox(options, {
    language: options.language ?? language,
    program,
    owner,
    environment: clientEnvironment,
    checkDirectory: (directory) => void mountOf(directory, '/work'),
    launch: (code, directory) => {
      const name = `millrace-${randomUUID()}`;
      return {
        args: [...containerOf(options, owner, name, code, directory), image, ...command, '/code'],
        // Killing the client would not end the container.
        kill: () => spawn(program, ['rm', '--force', name], detached).on('error', noop).unref(),
      };
    },
    check: (text, exitCode) => {
      if (exitCode !== 125) return;
      throw new Error(
        `The sandbox cannot start. docker() needs a running Docker, and the image ${image} (docker pull ${image}). It reports: ${text.slice(0, 500)}`,
      );
    },
  });
};

const rules: Readonly<Record<keyof DockerOptions, Rule>> = {
  ...programRules,
  image: [(value) => typeof value === 'string' && /^[\w][\w./:@-]*$/u.test(value), 'an image'],
  command: [
    (value) => Array.isArray(value) && value.every((part) => typeof part === 'string'),
    'a list of strings',
  ],
  language: isText,
  program: isText,
};

/** Of the client: where Docker is. */
const clientEnvironment = [
  ...['PATH', 'HOME', 'DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG', 'DOCKER_CERT_PATH'],
  ...['DOCKER_TLS_VERIFY', 'XDG_RUNTIME_DIR'],
];

const detached = { detached: true, stdio: 'ignore' } as const;

const containerOf = (
  { memoryMb = 512, maxProcesses = 64, network = false }: DockerOptions,
  owner: Owner | undefined,
  name: string,
  code: string,
  directory: string,
): readonly string[] => [
  ...['run', '--rm', '--pull', 'never', '--name', name, '--init'],
  ...(network ? [] : ['--network', 'none']),
  ...['--memory', `${memoryMb}m`, '--memory-swap', `${memoryMb}m`],
  ...['--pids-limit', `${maxProcesses}`, '--cpus', '1'],
  ...['--cap-drop', 'ALL', '--security-opt', 'no-new-privileges', '--read-only'],
  ...['--tmpfs', '/tmp:size=64m', '--user', userOf(owner)],
  ...['--mount', mountOf(directory, '/work')],
  ...['--mount', `${mountOf(code, '/code')},readonly`],
  ...['--workdir', '/work', '--env', 'HOME=/tmp'],
];

const userOf = ({ uid = getuid?.() ?? 1_000, gid = getgid?.() ?? 1_000 }: Partial<Owner> = {}) =>
  `${uid}:${gid}`;

/** Docker reads it as a line of CSV: a comma in a path would begin another option. */
const mountOf = (path: string, target: string): string => {
  if (!/[",\p{Cc}]/u.test(path)) return `type=bind,source=${path},target=${target}`;
  throw new MillraceError(
    'config',
    `docker() cannot mount ${JSON.stringify(path)}: the path must not have a comma, a double quote or a control character. Rename the directory.`,
  );
};
