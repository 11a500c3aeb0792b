import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { npm } from './run.mjs';
import { areInstalled } from './set-up/dependencies.mjs';
import { root } from './workspaces.mjs';

const help = `npm run bench:peers -- [name …]

Installs the frameworks that the bench compares with, and Node 22 and 24: those named, or all. Each has a
folder of its own, bench/peers/<name>, and is installed as its lock file says; one that is
installed already is left alone. None of them belongs to the workspace.`;

const folder = join(root, 'bench', 'peers');
const all = readdirSync(folder).filter((name) => existsSync(join(folder, name, 'package.json')));

// The .npmrc of the root does not reach these folders. Some of these packages ask for a newer Node than
// they need: bench/peers/README.md says which, and that they were tried.
const flags = [
  '--ignore-scripts',
  '--no-engine-strict',
  '--include=dev',
  '--include=optional',
  '--loglevel=error',
  '--no-audit',
  '--no-fund',
];

process.exitCode = await main();

async function main() {
  const { values, names, problem } = readArguments();
  if (problem) {
    console.error(`${problem}\n\n${help}\n\nThere are: ${all.join(', ')}.`);
    return 2;
  }
  if (values.help) {
    console.log(`${help}\n\nThere are: ${all.join(', ')}.`);
    return 0;
  }
  const failed = [];
  for (const name of names) {
    const code = await install(name);
    if (code > 128) return code;
    if (code !== 0) failed.push(name);
  }
  if (failed.length > 0) say(`Not installed: ${failed.join(', ')}.`);
  return failed.length > 0 ? 1 : 0;
}

function readArguments() {
  try {
    const options = { help: { type: 'boolean', short: 'h' } };
    const { values, positionals } = parseArgs({ allowPositionals: true, options });
    const unknown = positionals.filter((name) => !all.includes(name));
    if (unknown.length > 0) return { problem: `There is no peer ${unknown.join(' and no ')}.` };
    return { values, names: positionals.length > 0 ? [...new Set(positionals)] : all };
  } catch (error) {
    return { problem: error.message };
  }
}

async function install(name) {
  const path = join(folder, name);
  if (areInstalled(path)) {
    say(`${name}: as its lock file says.`);
    return 0;
  }
  say(`${name}: installing …`);
  const start = performance.now();
  const { code, output } = await npm(['ci', '--prefix', path, ...flags], { quiet: true });
  const took = ((performance.now() - start) / 1000).toFixed(1);
  if (code === 0) say(`${name}: installed in ${took} s.`);
  else say(code > 128 ? `${name}: stopped.` : `${output.trimEnd()}\n${name}: npm ci failed.`);
  return code;
}

function say(line) {
  process.stderr.write(`${line}\n`);
}
