import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesLoaded, importTime, type ImportTime } from '../imports/import-time.js';
import type { InstalledSize } from '../install/installed-size.js';
import { sizeOfFolder } from '../install/size-of-folder.js';
import { sizeOfPackages } from '../install/size-of-packages.js';
import { type AdapterRef, ownAdapters } from '../runner/adapters.js';
import { isRecord } from '../is-record.js';
import { at } from '../mock/paths.js';
import { measureRounds, medianOf } from '../runner/outcomes.js';
import { shown } from '../runner/show.js';
import { failuresOf, rawOf, rowOf, type Scenario } from './scenario.js';

/** Something that is imported, and what has to be installed for it. */
interface Import {
  readonly name: string;
  /** Packages by name, or files. */
  readonly imports: readonly string[];
  readonly size: () => InstalledSize;
}

const folder = fileURLToPath(new URL('../..', import.meta.url));

const packages = (...imports: readonly string[]): Import => ({
  name: imports.join(' + '),
  imports,
  size: () => sizeOfPackages(imports, folder),
});

/** An entry of core is weighed with the main one: no program imports it alone. */
const coreEntries = (): readonly Import[] => {
  const path = createRequire(import.meta.url).resolve('millrace/package.json');
  const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
  const exported = at(manifest, 'exports');
  const entries = Object.keys(isRecord(exported) ? exported : {}).filter(
    (entry) => entry !== '.' && !entry.endsWith('.json'),
  );
  return entries.map((entry) => ({
    name: `millrace${entry.slice(1)}`,
    imports: ['millrace', `millrace${entry.slice(1)}`],
    size: () => sizeOfPackages(['millrace', 'rxjs'], folder),
  }));
};

const own: readonly Import[] = [
  packages('rxjs'),
  packages('openai'),
  packages('@anthropic-ai/sdk'),
  packages('millrace', 'rxjs'),
  packages('@millrace/openai', 'millrace', 'rxjs'),
  packages('@millrace/anthropic', 'millrace', 'rxjs'),
  packages('@millrace/openai', 'millrace', 'rxjs', 'openai'),
  ...coreEntries(),
];

/** Of a peer all is imported that its adapter imports. */
const peer = ({ name, module }: AdapterRef): Import => ({
  name,
  imports: [module],
  size: () => sizeOfFolder(dirname(module)),
});

/** (g): what it takes to begin. */
export const weight: Scenario = {
  letter: 'g',
  about: 'time to import, size and packages to install',
  run: async (bench) => {
    const peers = bench.adapters.filter((adapter) => !ownAdapters.includes(adapter)).map(peer);
    const all = [...own, ...peers].map((one) => ({ ...one, floor: one.name }));
    const rounds = bench.isSmall ? 1 : Math.max(7, bench.rounds);
    const times = await measureRounds<ImportTime, (typeof all)[number]>(
      { ...bench, adapters: all, rounds },
      '(g) import',
      ({ imports }) => importTime(imports, bench.node.path),
    );
    const sizes = new Map(all.map((one) => [one.name, one.size()]));
    const files = new Map<string, readonly string[]>();
    for (const { name, imports } of all) {
      files.set(name, await filesLoaded(imports, bench.node.path).catch(() => []));
    }
    return {
      tables: [
        {
          title: `(g) imports in fresh processes, medians of ${rounds}; what an install brings`,
          about:
            'Of a peer, all is imported that its adapter imports. The SDKs of vendors are loaded by @millrace/openai and @millrace/anthropic with the first request: a row is with one. An entry of core is imported after the main one. files are those that Node loads. packages counts the named ones, too.',
          columns: [
            { name: 'import', isWords: true },
            ...['ms', 'cpu ms', 'files', 'MB', 'packages'].map((name) => ({ name })),
          ],
          rows: times.map((outcome) =>
            rowOf(outcome, () => {
              const { bytes = NaN, packages: count = NaN } = sizes.get(outcome.adapter.name) ?? {};
              return [
                shown(medianOf(outcome, ({ ms }) => ms)),
                shown(medianOf(outcome, ({ cpuMs }) => cpuMs)),
                (files.get(outcome.adapter.name)?.length ?? 0).toFixed(),
                shown(bytes / 1_000_000),
                count.toFixed(),
              ];
            }),
          ),
          notes: failuresOf(times),
        },
      ],
      failures: failuresOf(times),
      raw: {
        times: rawOf(times),
        sizes: Object.fromEntries(sizes),
        files: Object.fromEntries(files),
      },
    };
  },
};
