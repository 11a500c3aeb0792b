import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { install } from '../platforms/install.mjs';
import { node } from '../run.mjs';
import { readJson, root } from '../workspaces.mjs';

export const name = 'frameworks';
export const goal =
  'the examples for Angular, Express, Fastify, NestJS, Next.js and node:http compile, stream, and abort the model request of a client that leaves';

const folder = join(root, 'examples/platforms');
const examples = readdirSync(folder).filter((file) => file.endsWith('.ts'));

/** The compilers of the repository, by version. */
const compilers = ['typescript', 'typescript7'].map((compiler) => [
  readJson(root, 'node_modules', compiler, 'package.json').version,
  join(root, 'node_modules', compiler, 'bin/tsc'),
]);

export async function rows() {
  const skipped = await install(folder);
  const names = examples.map((file) => basename(file, '.ts'));
  if (skipped !== undefined) return names.map((what) => ({ what, skipped }));
  await build({
    entryPoints: examples.map((file) => join(folder, file)),
    outdir: join(folder, 'dist'),
    format: 'esm',
    target: 'es2022',
    logLevel: 'silent',
  });
  const results = [];
  for (const [version, compiler] of compilers) {
    const what = `TypeScript ${version} checks the examples of frameworks`;
    results.push({ what, problem: await ended([compiler, '--project', folder]) });
  }
  for (const name of names) {
    const what = `${name} answers, and aborts if its client leaves`;
    results.push({ what, problem: await ended(['scripts/platforms/frameworks.mjs', name]) });
  }
  return results;
}

async function ended(args) {
  const { code, output } = await node(args, { quiet: true });
  return code === 0 ? undefined : output;
}
