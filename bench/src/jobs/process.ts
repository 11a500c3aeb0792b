import { pathToFileURL } from 'node:url';
import type { Open } from '../adapter.js';
import { isRecord } from '../is-record.js';
import { jobs } from './jobs.js';

// Asked with the address of the adapter's module, that of the mock, the job and its options.
const [module = '', baseURL = '', name = '', options = '{}'] = process.argv.slice(2);

const hasOpen = (value: unknown): value is { readonly open: Open } =>
  isRecord(value) && typeof value['open'] === 'function';

const measure = async (): Promise<unknown> => {
  const adapter: unknown = await import(pathToFileURL(module).href);
  if (!hasOpen(adapter)) throw new Error(`${module} exports no 'open'.`);
  const job = jobs.get(name);
  if (job === undefined) throw new Error(`There is no job '${name}'.`);
  return job((setup) => adapter.open({ ...setup, baseURL }), JSON.parse(options));
};

/** What is left over must not keep the process. */
const say = (said: unknown): void => {
  process.send?.(said, undefined, undefined, () => process.exit(0));
};

process.on('disconnect', () => process.exit(0));
measure().then(
  (result) => say({ result }),
  (thrown: unknown) => say({ failure: thrown instanceof Error ? thrown.message : String(thrown) }),
);
