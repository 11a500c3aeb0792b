import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { readJson, root, workspaces } from '../workspaces.mjs';

const projects = ['.', ...workspaces(root)].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((file) => /^tsconfig.*\.json$/.test(file))
    .map((file) => [join(folder, file), folder]),
);

// A renamed file keeps its place in a list only by hand, and a build that is not from scratch does not notice.
it.each(projects)('%s names only files that exist', (file, folder) => {
  const { files = [], include = [], exclude = [], references = [] } = readJson(root, file);
  const named = [...files, ...include, ...exclude, ...references.map(({ path }) => path)];
  const missing = named
    .filter((path) => !path.includes('*'))
    .filter((path) => !existsSync(join(root, folder, path)));
  expect(missing).toEqual([]);
});
