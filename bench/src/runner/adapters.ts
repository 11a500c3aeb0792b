import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { at, textAt } from '../mock/paths.js';

/** An adapter that can be measured, and what it is measured against. */
export interface AdapterRef {
  readonly name: string;
  /** The file that exports `open`. */
  readonly module: string;
  /** The name of the adapter that is 1.0: the loop by hand over the same wire. */
  readonly floor: string;
  /** It needs this Node, or a newer one. */
  readonly wantsNode?: string;
}

/** Where the peers are, each in a folder of its own. */
export const peersFolder = new URL('../../peers/', import.meta.url);

const own = (name: string, floor = 'floor'): AdapterRef => ({
  name,
  module: fileURLToPath(new URL(`../../dist/adapters/${name}.js`, import.meta.url)),
  floor,
});

/** The adapters of this package, in the order of the tables. */
export const ownAdapters: readonly AdapterRef[] = [
  own('floor'),
  own('openai-sdk'),
  own('millrace'),
  own('millrace-interceptors'),
  own('millrace-devtools'),
  own('millrace-devtools-page'),
  own('floor-messages', 'floor-messages'),
  own('anthropic-sdk', 'floor-messages'),
  own('millrace-anthropic', 'floor-messages'),
];

/** A loop by hand and Millrace over a model in the same process: what a tool costs, and nothing of a transport. */
export const toolAdapters: readonly AdapterRef[] = [
  'floor',
  'millrace',
  'millrace-interceptors',
  'millrace-approve',
].map((name) => ({ ...own(`tools/${name}`), name }));

/** The peers whose packages are installed. */
export const installedPeers = (folder = peersFolder): readonly AdapterRef[] => {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .toSorted()
    .filter((name) =>
      ['adapter.mjs', 'node_modules'].every((file) =>
        existsSync(new URL(`${name}/${file}`, folder)),
      ),
    )
    .map((name) => ({
      name,
      module: fileURLToPath(new URL(`${name}/adapter.mjs`, folder)),
      floor: 'floor',
      ...wanted(new URL(`${name}/package.json`, folder)),
    }));
};

/** Of `engines` only the least version is looked at: `>=22.12`. */
const wanted = (file: URL): Pick<AdapterRef, 'wantsNode'> => {
  const engines = at(JSON.parse(readFileSync(file, 'utf8')), 'engines');
  const least = />=\s*v?([\d.]+)/.exec(textAt(engines, 'node'))?.[1];
  return least === undefined ? {} : { wantsNode: least };
};
