import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { readJson } from '../workspaces.mjs';
import { install } from './install.mjs';

const folder = fileURLToPath(new URL('runtimes', import.meta.url));
const { platform, arch } = process;
const cpu = arch === 'x64' ? '64' : arch;

/** The program of each runtime, which its package would link in a script that is not run. */
const programs = {
  bun: [`@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}/bin/bun`],
  deno: [`@deno/${platform}-${arch}-glibc/deno`, `@deno/${platform}-${arch}/deno`],
  workerd: [`@cloudflare/workerd-${platform}-${cpu}/bin/workerd`],
};

/** A runtime with its version, installed first: `{ label, path }`, or `{ label, why }` if it cannot run here. */
export async function runtime(name) {
  const label = `${name} ${readJson(folder, 'package.json').dependencies[name]}`;
  const problem = await install(folder);
  const paths = (programs[name] ?? [name]).map((path) => join(folder, 'node_modules', path));
  const path = paths.find(existsSync);
  return path === undefined
    ? { label, why: problem ?? `not built for ${platform}` }
    : { label, path };
}

/** The class of a virtual machine with the APIs of Vercel's edge functions. */
export const edgeVm = () => createRequire(join(folder, 'package.json'))('@edge-runtime/vm').EdgeVM;

/** Serves a module worker until `use` of its URL has ended, and resolves to its result. */
export async function withWorkerd(path, config, use) {
  const child = spawn(path, ['serve', '--control-fd=3', config], {
    cwd: dirname(config),
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text));
  try {
    for await (const line of createInterface({ input: child.stdio[3] })) {
      const { event, port } = JSON.parse(line);
      if (event === 'listen') return await use(`http://127.0.0.1:${port}`);
    }
    throw new Error(`workerd did not start:\n${output}`);
  } finally {
    child.kill();
  }
}
