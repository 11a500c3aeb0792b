import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isRecord } from '../is-record.js';
import { at } from '../mock/paths.js';

/**
 * The folders of packages and of all that they need at run time, found as Node finds them from a folder. Optional ones count where
 * they are installed; peers count, but for those that are optional.
 */
export const closure = (names: readonly string[], from: string): ReadonlySet<string> => {
  const found = new Set<string>();
  const waiting = names.map((name) => ({ name, from, isOptional: false }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const folder = resolved(next.name, next.from);
    if (folder === undefined) {
      if (next.isOptional) continue;
      throw new Error(`${next.name} is not installed.`);
    }
    if (found.has(folder)) continue;
    found.add(folder);
    waiting.push(...needsOf(folder));
  }
  return found;
};

const resolved = (name: string, from: string): string | undefined => {
  const folder = join(from, 'node_modules', name);
  if (existsSync(join(folder, 'package.json'))) return realpathSync(folder);
  return dirname(from) === from ? undefined : resolved(name, dirname(from));
};

interface Need {
  readonly name: string;
  readonly from: string;
  readonly isOptional: boolean;
}

const needsOf = (from: string): readonly Need[] => {
  const manifest: unknown = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
  const optional = namesIn(at(manifest, 'optionalDependencies'));
  const peers = namesIn(at(manifest, 'peerDependencies')).filter(
    (name) => at(at(at(manifest, 'peerDependenciesMeta'), name), 'optional') !== true,
  );
  return [...namesIn(at(manifest, 'dependencies')), ...peers, ...optional].map((name) => ({
    name,
    from,
    isOptional: optional.includes(name),
  }));
};

const namesIn = (dependencies: unknown): readonly string[] =>
  isRecord(dependencies) ? Object.keys(dependencies) : [];
