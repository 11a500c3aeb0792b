import { join } from 'node:path';
import { node, npm } from './run.mjs';
import { setUp } from './set-up.mjs';
import { areInstalled } from './set-up/dependencies.mjs';
import { root } from './workspaces.mjs';

await setUp();

// AI SDK 7 asks for Node 22, although its client runs on Node 20. So it is not part of the workspace.
const folder = join(root, 'conformance', 'client-suite', 'ai-7');
const flags = ['--no-engine-strict', '--ignore-scripts', '--no-audit', '--no-fund'];
if (!areInstalled(folder)) {
  process.stderr.write('Installing AI SDK 7 …\n');
  const { code, output } = await npm(['ci', '--prefix', folder, ...flags], { quiet: true });
  if (code !== 0) {
    process.stderr.write(`${output.trimEnd()}\nnpm ci failed.\n`);
    process.exit(code);
  }
}

const { code } = await node(['conformance/client-suite/dist/main.js', ...process.argv.slice(2)]);
process.exit(code);
