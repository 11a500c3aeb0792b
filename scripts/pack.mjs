// Packs the published packages: for tests of what is published, and for projects that install them before they are on npm.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { published } from './manifests.mjs';
import { npm } from './run.mjs';
import { setUp } from './set-up.mjs';
import { root } from './workspaces.mjs';

const help = `npm run pack -- [folder]

Builds every published package, writes the tarballs to a folder (default: ../millrace-packages), and prints the command
that installs them into a project.`;

/** Packs the packages into a folder, and resolves to the path of each tarball by the name of its package. */
export const pack = async (folder) =>
  new Map([...(await packWithFiles(folder))].map(([name, { tarball }]) => [name, tarball]));

/** The same, with the files in each tarball, and its size in bytes. */
export async function packWithFiles(folder) {
  mkdirSync(folder, { recursive: true });
  const chosen = published().flatMap((path) => ['--workspace', path]);
  const args = ['pack', '--json', '--loglevel=error', '--pack-destination', folder, ...chosen];
  const { code, output } = await npm(args, { quiet: true });
  if (code !== 0) throw new Error(output);
  return new Map(
    JSON.parse(output.slice(output.indexOf('['))).map(({ name, filename, files, size }) => [
      name,
      { tarball: join(folder, filename), files: files.map(({ path }) => path), size },
    ]),
  );
}

async function main() {
  const { values, positionals } = parseArgs({
    options: { help: { type: 'boolean', short: 'h' } },
    allowPositionals: true,
  });
  if (values.help) {
    console.log(help);
    return;
  }
  const folder = resolve(positionals[0] ?? '../millrace-packages');
  await setUp();
  console.error('Packing …');
  const tarballs = await pack(folder);
  console.log(`Packed ${tarballs.size} packages. In your project, run:

  npm install ${folder}/*.tgz rxjs zod

Or start a project with them:

  node ${join(root, 'packages/create-millrace/dist/bundle/bin.js')} my-agent --packages ${folder}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
