import { existsSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import type { Environment } from '../environment.js';

/** Where runs are recorded. */
export type StorePlace =
  | { readonly type: 'files' | 'embedded'; readonly directory: string }
  | { readonly type: 'postgres'; readonly url: string }
  /** Runs are not recorded; `why` is the reason for the user. */
  | { readonly type: 'none'; readonly why: string };

/** Finds the place of the runs: the option (false for none), the environment, or the platform's state directory. */
export const storePlace = (
  option: string | false | undefined,
  { env, platform, directory }: Pick<Environment, 'env' | 'platform' | 'directory'>,
): StorePlace => {
  if (option === false) return { type: 'none', why: '--no-store records nothing' };
  const named = option ?? env['MILLRACE_STORE'] ?? '';
  if (option === undefined && named === 'none') {
    return { type: 'none', why: 'MILLRACE_STORE is "none", so nothing is recorded' };
  }
  if (/^postgres(?:ql)?:\/\//.test(named)) return { type: 'postgres', url: named };
  if (named !== '') return directoryPlace(resolve(directory, named));
  const state = stateDirectory(env, platform);
  return state === undefined
    ? { type: 'none', why: 'this user has no home directory: choose a directory with --store' }
    : { type: 'files', directory: join(state, 'millrace') };
};

/** A directory with an embedded database, or one with files. */
const directoryPlace = (directory: string): StorePlace => ({
  type: existsSync(join(directory, 'database', 'PG_VERSION')) ? 'embedded' : 'files',
  directory,
});

/** Describes the place without credentials. */
export const describePlace = (place: StorePlace): string => {
  switch (place.type) {
    case 'files':
    case 'embedded':
      return place.directory;
    case 'postgres':
      return URL.canParse(place.url) ? `Postgres at ${new URL(place.url).host}` : 'Postgres';
    case 'none':
      return 'nowhere';
  }
};

const stateDirectory = (env: Environment['env'], platform: string): string | undefined => {
  const { XDG_STATE_HOME: state = '', HOME: home = '', LOCALAPPDATA: local = '' } = env;
  // Relative paths must be ignored: https://specifications.freedesktop.org/basedir-spec/latest/
  if (isAbsolute(state)) return state;
  if (platform === 'win32') return local === '' ? undefined : local;
  if (home === '') return undefined;
  return platform === 'darwin'
    ? join(home, 'Library', 'Application Support')
    : join(home, '.local', 'state');
};

/** A note to append to a place if its directory does not exist, else an empty string. */
export const missingNote = (place: StorePlace): string =>
  place.type === 'files' && !existsSync(place.directory) ? ', which does not exist' : '';
