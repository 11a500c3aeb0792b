import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { node, npm } from './run.mjs';
import {
  compiledState,
  isCompiled,
  lastCompiled,
  pathsToLookAt,
  rememberCompiled,
} from './set-up/compiled.mjs';
import {
  command,
  installationFiles,
  installedPart,
  partFor,
  rememberCommandInstalled,
} from './set-up/dependencies.mjs';
import { isAtLeast } from './set-up/node-version.mjs';
import { isUnchanged, lookAt, rememberUnchanged } from './set-up/unchanged.mjs';
import { readJson, root } from './workspaces.mjs';

const lock = '.set-up.lock';

/**
 * Makes the workspace ready to run: installs the dependencies and compiles the packages, each only
 * where needed, and only what the command needs if that is the need (see `partFor`). Says on stderr
 * what takes time, and ends the process with a message if it fails.
 */
export async function setUp(need = 'all') {
  requireNode();
  if (isSetUp(need)) return;
  const { oneAtATime } = await import('./set-up/one-at-a-time.mjs');
  const code = await oneAtATime(
    join(root, lock),
    () => catchUp(partFor(root, need)),
    () => say(`Waiting for another set-up of this folder (${lock} holds its process id) …`),
  );
  if (code !== 0) process.exit(code);
  // The next time, a look is enough.
  isSetUp(need);
}

/** Whether there is nothing to do. Reads all sources, unless they look as they did the last time. */
export function isSetUp(need = 'all') {
  if (isUnchanged(root, need)) return true;
  const { sources, others } = pathsToLookAt(root);
  // Before they are read: a change in between then shows.
  const seen = lookAt(root, { sources, others: [...others, ...installationFiles] });
  const part = installedPart(root);
  const isDone = (part === 'all' || part === need) && isCompiled(root, part);
  if (isDone && seen !== undefined) rememberUnchanged(root, part, seen);
  return isDone;
}

/** Ends the process with a message if its version of Node is too old. */
export function requireNode() {
  const { node: wanted } = readJson(root, 'package.json').engines;
  const actual = process.versions.node;
  if (isAtLeast(actual, wanted)) return;
  say(`Millrace needs Node ${wanted}, and this is Node ${actual}.`);
  say('Install a newer one, for instance with `nvm install 22`, and run the command again.');
  process.exit(1);
}

const catchUp = async (part) =>
  (installedPart(root) === part ? 0 : await install(part)) ||
  (isCompiled(root, part) ? 0 : await compile(part));

async function install(part) {
  const why = existsSync(join(root, 'node_modules')) ? 'not up to date' : 'first run';
  const only = part === 'all' ? [] : ['--workspace', command];
  const code = await step({
    ...(part === 'all'
      ? {
          doing: `Installing dependencies (${why}, about 30 s)`,
          done: 'Installed dependencies',
        }
      : {
          doing: `Installing what the command needs (${why}, about 15 s; npm test installs the rest)`,
          done: 'Installed what the command needs',
        }),
    failed:
      'npm ci failed. Check the network, or the lock file with `npm install`; then try again.',
    // Flags win over the environment: NODE_ENV=production, or the loglevel of `npm --silent start`.
    work: () =>
      npm(['ci', ...only, '--include=dev', '--loglevel=error', '--no-audit', '--no-fund'], quiet),
  });
  if (code === 0 && part === 'command') rememberCommandInstalled(root);
  return code;
}

async function compile(part) {
  const { sources, output } = compiledState(root);
  const last = lastCompiled(root);
  // tsc trusts its .tsbuildinfo, which lies beside dist: it does not see that output was deleted.
  const force = output === last.output && last.part === 'all' ? [] : ['--force'];
  rememberCompiled(root, { output, part });
  const code = await step({
    doing: part === 'all' ? 'Building' : 'Building the command',
    done: 'Built',
    failed: 'The build failed. Correct what it names; if that is not yours, try `npm run clean`.',
    work: async () => {
      const steps = await Promise.all([
        node(['scripts/set-up/pages.mjs'], quiet),
        // The bundler reads the sources: tsc checks them, and writes declarations.
        ...(part === 'all'
          ? [node(['node_modules/typescript7/bin/tsc', '-b', ...force], quiet)]
          : []),
      ]);
      return steps.find((it) => it.code !== 0) ?? bundle();
    },
  });
  const built = code === 0 ? { sources } : {};
  rememberCompiled(root, { ...built, output: compiledState(root).output, part });
  return code;
}

async function bundle() {
  try {
    // What it imports is installed by now.
    const { writeBundles } = await import('./set-up/bundles.mjs');
    await writeBundles(root);
    return { code: 0, output: '' };
  } catch (error) {
    return { code: 1, output: error.message };
  }
}

const quiet = { quiet: true };

async function step({ doing, done, failed, work }) {
  say(`${doing} …`);
  const start = performance.now();
  const { code, output } = await work();
  if (code === 0) say(`${done} in ${((performance.now() - start) / 1000).toFixed(1)} s.`);
  else if (code > 128) say('Stopped.');
  else say(`${output.trimEnd()}\n\n${failed}`);
  return code;
}

function say(line) {
  process.stderr.write(`${line}\n`);
}
