import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { importTime, type ImportTime } from '../imports/import-time.js';
import type { InstalledSize } from '../install/installed-size.js';
import { sizeOfFolder } from '../install/size-of-folder.js';
import { sizeOfPackages } from '../install/size-of-packages.js';
import { type AdapterRef, ownAdapters } from '../runner/adapters.js';
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

const own: readonly Import[] = [
  packages('rxjs'),
  packages('openai'),
  packages('@anthropic-ai/sdk'),
  packages('@millrace/core', 'rxjs'),
  packages('@millrace/openai', '@millrace/core', 'rxjs'),
  packages('@millrace/anthropic', '@millrace/core', 'rxjs'),
  packages('@millrace/openai', '@millrace/core', 'rxjs', 'openai'),
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
    return {
      tables: [
        {
          title: `(g) imports in fresh processes, medians of ${rounds}; what an install brings`,
          about:
            'Of a peer, all is imported that its adapter imports. The SDKs of vendors are loaded by @millrace/openai and @millrace/anthropic with the first request: the last row of ours is with it. packages counts the named ones, too.',
          columns: [
            { name: 'import', isWords: true },
            ...['ms', 'cpu ms', 'MB', 'packages'].map((name) => ({ name })),
          ],
          rows: times.map((outcome) =>
            rowOf(outcome, () => {
              const { bytes = NaN, packages: count = NaN } = sizes.get(outcome.adapter.name) ?? {};
              return [
                shown(medianOf(outcome, ({ ms }) => ms)),
                shown(medianOf(outcome, ({ cpuMs }) => cpuMs)),
                shown(bytes / 1_000_000),
                count.toFixed(),
              ];
            }),
          ),
          notes: failuresOf(times),
        },
      ],
      failures: failuresOf(times),
      raw: { times: rawOf(times), sizes: Object.fromEntries(sizes) },
    };
  },
};
