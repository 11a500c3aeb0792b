import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { peersFolder } from './adapters.js';
import { UsageError } from './usage-error.js';

/** A Node that runs what is measured. */
export interface NodeProgram {
  readonly path: string;
  /** As `20.19.0`. */
  readonly version: string;
}

/** The one that runs this. */
export const thisNode: NodeProgram = { path: process.execPath, version: process.versions.node };

/** Finds a Node by its path, or by its major version if it runs this or `npm run bench:peers` has installed it. */
export const nodeProgram = (asked: string): NodeProgram => {
  if (asked === thisNode.version.split('.')[0]) return thisNode;
  const isVersion = /^\d+$/.test(asked);
  const path = isVersion ? installed(asked) : asked;
  if (!existsSync(path)) {
    throw new UsageError(
      isVersion
        ? `Node ${asked} is not installed here: run \`npm run bench:peers\` first, or give its path.`
        : `There is no ${asked}.`,
    );
  }
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  if (status !== 0 || !stdout.startsWith('v')) throw new UsageError(`${asked} is no Node.`);
  return { path, version: stdout.trim().slice(1) };
};

/** npm installs the program itself as a package of its platform. */
const installed = (major: string): string => {
  const modules = fileURLToPath(new URL(`node-${major}/node_modules/`, peersFolder));
  const program = process.platform === 'win32' ? 'node.exe' : 'bin/node';
  const places = [`node-${process.platform}-${process.arch}`, 'node'];
  const paths = places.map((place) => join(modules, place, program));
  return paths.find((path) => existsSync(path)) ?? '';
};
