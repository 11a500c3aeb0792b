import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

export const readJson = (...path) => JSON.parse(readFileSync(join(...path), 'utf8'));

/** The same, but undefined where the file does not exist or another process is writing it now. */
export function readJsonIfWhole(...path) {
  try {
    return readJson(...path);
  } catch {
    return undefined;
  }
}

/** The folders of the packages that package.json calls workspaces, relative to the root. */
export const workspaces = (folder) =>
  readJson(folder, 'package.json')
    .workspaces.flatMap((pattern) => expand(folder, pattern))
    .filter((workspace) => existsSync(join(folder, workspace, 'package.json')));

function expand(folder, pattern) {
  if (!pattern.endsWith('/*')) return [pattern];
  const parent = pattern.slice(0, -2);
  return readdirSync(join(folder, parent)).map((name) => `${parent}/${name}`);
}
