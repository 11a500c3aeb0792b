import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { npm } from './run.mjs';
import { published } from './manifests.mjs';

/** Packs the packages that are published into a folder, and resolves to the path of each tarball by the name of its package. */
export async function pack(folder) {
  mkdirSync(folder, { recursive: true });
  const chosen = published().flatMap((path) => ['--workspace', path]);
  const args = ['pack', '--json', '--loglevel=error', '--pack-destination', folder, ...chosen];
  const { code, output } = await npm(args, { quiet: true });
  if (code !== 0) throw new Error(output);
  return new Map(
    JSON.parse(output.slice(output.indexOf('['))).map(({ name, filename }) => [
      name,
      join(folder, filename),
    ]),
  );
}
