import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readJsonIfWhole } from '../workspaces.mjs';

/**
 * The sizes and times of files and folders. The time of a folder changes when an entry is added to it, removed or renamed.
 * Undefined if a source is so young that a second change in the same moment would not show.
 */
export function lookAt(root, { sources, others }, now = Date.now()) {
  const seen = [...sources, ...others].map((path) => [path, ...timesOf(root, path)]);
  const youngest = Math.max(...seen.slice(0, sources.length).flatMap(([, , ...times]) => times));
  return youngest < now - coarsestMs ? seen : undefined;
}

/** Remembers that this part was up to date when it looked like this. A new installation removes the record. */
export function rememberUnchanged(root, part, seen) {
  try {
    mkdirSync(dirname(record(root)), { recursive: true });
    writeFileSync(record(root), JSON.stringify({ part, seen }));
  } catch {
    // Where nothing can be written, everything is read again each time.
  }
}

/** Whether everything looks as it did when this part was up to date. Takes a look at each file, and reads none of them. */
export function isUnchanged(root, need) {
  const last = readJsonIfWhole(record(root));
  if (last === undefined || (last.part !== 'all' && last.part !== need)) return false;
  return last.seen.every(([path, ...times]) => {
    const now = timesOf(root, path);
    return times.every((it, index) => it === now[index]);
  });
}

const record = (root) => join(root, 'node_modules/.millrace/unchanged.json');

/** Some file systems count whole seconds, or every second one. */
const coarsestMs = 2_000;

function timesOf(root, path) {
  try {
    const found = statSync(join(root, path));
    return [found.isDirectory() ? 0 : found.size, found.mtimeMs, found.ctimeMs];
  } catch {
    // It does not exist, or what should be a folder is none.
    return [-1, 0, 0];
  }
}
