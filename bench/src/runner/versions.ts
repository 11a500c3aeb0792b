import { readFileSync } from 'node:fs';
import { isRecord } from '../is-record.js';
import { at } from '../mock/paths.js';
import { type AdapterRef, ownAdapters, peersFolder } from './adapters.js';

/** The versions of all packages that are measured: those of this repository, and of each peer. */
export const versionsOf = (
  adapters: readonly AdapterRef[],
): Readonly<Record<string, Readonly<Record<string, unknown>>>> => {
  const own = new Set(ownAdapters.map(({ name }) => name));
  const peers = adapters.filter(({ name }) => !own.has(name));
  return {
    bench: dependenciesOf(new URL('../../package.json', import.meta.url)),
    ...Object.fromEntries(
      peers.map(({ name }) => [name, dependenciesOf(new URL(`${name}/package.json`, peersFolder))]),
    ),
  };
};

/** They are exact: nothing else is installed. */
const dependenciesOf = (file: URL): Readonly<Record<string, unknown>> => {
  const found = at(JSON.parse(readFileSync(file, 'utf8')), 'dependencies');
  return isRecord(found) ? found : {};
};
