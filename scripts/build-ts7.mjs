import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { node } from './run.mjs';
import { root, workspaces } from './workspaces.mjs';

// TypeScript 7 has no JavaScript API yet, so Jest and ESLint stay with 6: this is a second opinion.
const projects = workspaces(root).filter((path) => existsSync(join(root, path, 'tsconfig.json')));

for (const project of projects) {
  const { code } = await node(['node_modules/typescript7/bin/tsc', '-p', project, '--noEmit']);
  if (code !== 0) process.exit(code);
}
