import { existsSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import type { Environment } from '../environment.js';

/** Where runs are recorded. */
export type StorePlace =
  /** A SQLite database. The default one is replaced by files beside it if SQLite is not available. */
  | { readonly type: 'sqlite'; readonly path: string; readonly isDefault: boolean }
  | { readonly type: 'files'; readonly directory: string }
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
  if (named !== '') return pathPlace(resolve(directory, named));
  const state = stateDirectory(env, platform);
  return state === undefined
    ? { type: 'none', why: 'this user has no home directory: choose a directory with --store' }
    : { type: 'sqlite', path: join(state, 'millrace', 'millrace.db'), isDefault: true };
};

/** The name of a database ends in `.db`; other paths are directories of files. */
const pathPlace = (path: string): StorePlace =>
  path.endsWith('.db')
    ? { type: 'sqlite', path, isDefault: false }
    : { type: 'files', directory: path };

/** Describes the place without credentials. */
export const describePlace = (place: StorePlace): string => {
  switch (place.type) {
    case 'sqlite':
      return place.path;
    case 'files':
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

/** A note to append to a place if it does not exist, else an empty string. */
export const missingNote = (place: StorePlace): string => {
  const path =
    place.type === 'files' ? place.directory : place.type === 'sqlite' ? place.path : undefined;
  return path !== undefined && !existsSync(path) ? ', which does not exist' : '';
};
