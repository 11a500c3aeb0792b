// Packs every published package, for projects that install them before they are on npm.
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { pack } from './packed.mjs';
import { setUp } from './set-up.mjs';
import { root } from './workspaces.mjs';

const help = `npm run pack -- [folder]

Builds every published package, writes the tarballs to a folder (default: ../millrace-packages), and prints the command
that installs them into a project.`;

const { values, positionals } = parseArgs({
  options: { help: { type: 'boolean', short: 'h' } },
  allowPositionals: true,
});
if (values.help) {
  console.log(help);
} else {
  const folder = resolve(positionals[0] ?? '../millrace-packages');
  await setUp();
  console.error('Packing …');
  const tarballs = await pack(folder);
  console.log(`Packed ${tarballs.size} packages. In your project, run:

  npm install ${folder}/*.tgz rxjs zod

Or start a project with them:

  node ${join(root, 'packages/create-millrace/dist/bundle/bin.js')} my-agent --packages ${folder}`);
}
