import { existsSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import type { Environment } from '../environment.js';

/** Where runs are written down. */
export type StorePlace =
  | { readonly type: 'files' | 'embedded'; readonly directory: string }
  | { readonly type: 'postgres'; readonly url: string }
  /** Nowhere; `why` says it to a person. */
  | { readonly type: 'none'; readonly why: string };

/** Finds the place of the runs: what the caller said (false: nowhere), else what the environment says, else where this platform keeps the state of programs. */
export const storePlace = (
  said: string | false | undefined,
  { env, platform, directory }: Pick<Environment, 'env' | 'platform' | 'directory'>,
): StorePlace => {
  if (said === false) return { type: 'none', why: 'with --no-store nothing is written down' };
  const named = said ?? env['MILLRACE_STORE'] ?? '';
  if (said === undefined && named === 'none') {
    return { type: 'none', why: 'MILLRACE_STORE is "none", so that nothing is written down' };
  }
  if (/^postgres(?:ql)?:\/\//.test(named)) return { type: 'postgres', url: named };
  if (named !== '') return directoryPlace(resolve(directory, named));
  const state = stateDirectory(env, platform);
  return state === undefined
    ? { type: 'none', why: 'this user has no home directory: name a directory with --store' }
    : { type: 'files', directory: join(state, 'millrace') };
};

/** A directory in which a program has opened an embedded database, or one of files. */
const directoryPlace = (directory: string): StorePlace => ({
  type: existsSync(join(directory, 'database', 'PG_VERSION')) ? 'embedded' : 'files',
  directory,
});

/** Says where that is, without credentials. */
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
  // What is not absolute is to be passed over: https://specifications.freedesktop.org/basedir-spec/latest/
  if (isAbsolute(state)) return state;
  if (platform === 'win32') return local === '' ? undefined : local;
  if (home === '') return undefined;
  return platform === 'darwin'
    ? join(home, 'Library', 'Application Support')
    : join(home, '.local', 'state');
};
