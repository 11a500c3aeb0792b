import { join } from 'node:path';
import { install } from '../platforms/install.mjs';
import { node } from '../run.mjs';
import { root } from '../workspaces.mjs';

export const name = 'embedding';
export const goal =
  'a chat server within Express, Fastify, NestJS, Hono, Koa, Next.js, Vite and proxies: streams, cancels, uploads, origins, other routes, the page, A2A, OpenAI, MCP, sockets';

export async function rows() {
  const skipped = await install(join(root, 'examples/platforms'));
  // They import the packages, which are built by now.
  const { hosts } = await import('../platforms/hosts.mjs');
  const names = Object.keys(hosts);
  if (skipped !== undefined) return names.map((what) => ({ what, skipped }));
  // Next.js starts once in a process.
  const alone = names.filter((host) => host.startsWith('Next.js'));
  const problems = {};
  for (const together of [
    names.filter((host) => !alone.includes(host)),
    ...alone.map((host) => [host]),
  ]) {
    const { code, output } = await node(['scripts/platforms/embedding.mjs', ...together], {
      quiet: true,
    });
    const line = output.split('\n').findLast((text) => text.startsWith('{"'));
    if (code !== 0 || line === undefined) {
      for (const host of together) problems[host] = { ends: `exit code ${code}\n${output}` };
    } else Object.assign(problems, JSON.parse(line));
  }
  return names.flatMap((host) =>
    Object.entries(problems[host]).map(([cell, problem]) => ({
      what: `${host}: ${cell}`,
      problem: problem ?? undefined,
    })),
  );
}
