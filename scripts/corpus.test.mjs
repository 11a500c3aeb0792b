import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { root } from './workspaces.mjs';

/** The digest of all files of a folder, with their paths. */
const digestOf = (folder) => {
  const hash = createHash('sha256');
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length).replaceAll('\\', '/'))
    .sort();
  for (const path of paths) hash.update(`${path}\0`).update(readFileSync(join(folder, path)));
  return hash.digest('hex').slice(0, 16);
};

/**
 * What is stored by users in format 1 has this form. If this test fails, restore the files: a digest is not updated.
 * A new form is a new sample of the corpus of today, and if this release could not read it, a new format version.
 */
const frozen = [
  ['millrace/corpus/format-1/journals', '85ec6cd33192d05c'],
  ['millrace/corpus/format-1/states', '10530f2814163f81'],
  ['store/corpus/format-1/files', 'a47301a72bba438b'],
];

it.each(frozen)('the corpus of format 1 never changes: %s', (folder, digest) => {
  expect(digestOf(join(root, 'packages', folder))).toBe(digest);
});
