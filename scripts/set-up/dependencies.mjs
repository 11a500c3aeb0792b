import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readJson, readJsonIfWhole } from '../workspaces.mjs';

/**
 * Which part of the workspace is installed: `all`, or `command`, which is the command with what it needs; undefined if
 * neither is up to date.
 */
export function installedPart(root) {
  if (areInstalled(root)) return 'all';
  return existsSync(join(root, record)) && lastCommandLock(root) === lockFile(root)
    ? 'command'
    : undefined;
}

/** Which part to set up. The command is enough for `npm start`, unless something else was installed before. */
export function partFor(root, need) {
  const isOther = existsSync(join(root, record)) && lastCommandLock(root) === undefined;
  return isOther || areInstalled(root) ? 'all' : need;
}

/** The workspace that `command` is. Its development dependencies bundle it. */
export const command = 'packages/cli';

/** Remembers that the dependencies of the command are installed. The installation of all removes this record. */
export function rememberCommandInstalled(root) {
  mkdirSync(dirname(join(root, commandRecord)), { recursive: true });
  writeFileSync(join(root, commandRecord), lockFile(root));
}

const lastCommandLock = (root) =>
  existsSync(join(root, commandRecord))
    ? readFileSync(join(root, commandRecord), 'utf8')
    : undefined;
const lockFile = (root) => readFileSync(join(root, 'package-lock.json'), 'utf8');
const record = 'node_modules/.package-lock.json';
const commandRecord = 'node_modules/.millrace/command-lock.json';

/** What decides which part is installed. */
export const installationFiles = ['package-lock.json', record, commandRecord];

/**
 * Whether node_modules holds what the lock file asks for. The last thing that npm writes there is a
 * record of what it installed: an interrupted install leaves none, and one by hand counts too.
 */
export function areInstalled(root) {
  const wanted = readJson(root, 'package-lock.json').packages;
  const installed = readJsonIfWhole(root, record)?.packages;
  return (
    installed !== undefined &&
    Object.keys(installed).every((path) => path in wanted) &&
    Object.keys(wanted).every((path) => path === '' || isSame(wanted[path], installed[path]))
  );
}

// Optional packages are often for another platform and then not installed.
const isSame = (wanted, installed) =>
  installed === undefined
    ? wanted.optional === true
    : wanted.version === installed.version && wanted.integrity === installed.integrity;
