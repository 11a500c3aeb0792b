import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { stamp } from './set-up/compiled.mjs';
import { root, workspaces } from './workspaces.mjs';

const built = ['dist', 'temp', 'tsconfig.tsbuildinfo', 'tsconfig.tests.tsbuildinfo'];
const paths = workspaces(root).flatMap((workspace) =>
  built.map((name) => join(root, workspace, name)),
);

const site = ['dist', '.vitepress/temp'].map((name) => join(root, 'docs/site', name));

for (const path of [...paths, ...site, stamp(root)]) rmSync(path, { recursive: true, force: true });
