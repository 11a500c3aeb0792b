import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { describePlace, missingNote, storePlace } from './store-place.js';

const placed = (
  said: string | false | undefined,
  env: Readonly<Record<string, string>>,
  platform = 'linux',
) => storePlace(said, { env, platform, directory: '/srv/app' });

describe('storePlace', () => {
  it.each([
    [{ HOME: '/home/user' }, 'linux', '/home/user/.local/state/millrace'],
    [{ HOME: '/home/user', XDG_STATE_HOME: '/state' }, 'linux', '/state/millrace'],
    [{ HOME: '/home/user', XDG_STATE_HOME: 'state' }, 'linux', '/home/user/.local/state/millrace'],
    [{ HOME: '/Users/user' }, 'darwin', '/Users/user/Library/Application Support/millrace'],
    [{ LOCALAPPDATA: '/local' }, 'win32', '/local/millrace'],
    [{ HOME: '/home/user', MILLRACE_STORE: 'runs' }, 'linux', '/srv/app/runs'],
    [{ HOME: '/home/user', MILLRACE_STORE: '' }, 'linux', '/home/user/.local/state/millrace'],
  ])('finds with %j on %s the directory %s', (env, platform, directory) => {
    const isDefault = (env as { MILLRACE_STORE?: string }).MILLRACE_STORE !== 'runs';
    expect(placed(undefined, env, platform)).toEqual(
      isDefault
        ? { type: 'sqlite', path: `${directory}/millrace.db`, isDefault }
        : { type: 'files', directory },
    );
  });

  it('is a database if its name ends in .db, and a directory otherwise', () => {
    const path = '/srv/app/runs.db';
    expect(placed('runs.db', {})).toEqual({ type: 'sqlite', path, isDefault: false });
    expect(placed(undefined, { MILLRACE_STORE: './runs.db' })).toEqual(placed('runs.db', {}));
    expect(placed('runs.db/', {})).toEqual(placed('runs.db', {}));
    expect(placed('runs.dbs', {})).toEqual({ type: 'files', directory: '/srv/app/runs.dbs' });
    expect(describePlace(placed('runs.db', {}))).toBe(path);
  });

  it('takes what is said before what the environment says', () => {
    const env = { MILLRACE_STORE: 'postgres://a/b' };
    expect(placed('./x', env)).toEqual({ type: 'files', directory: '/srv/app/x' });
    expect(placed(undefined, env)).toEqual({ type: 'postgres', url: 'postgres://a/b' });
    expect(placed('none', env)).toEqual({ type: 'files', directory: '/srv/app/none' });
  });

  it.each<[false | undefined, Readonly<Record<string, string>>, RegExp]>([
    [false, {}, /--no-store/],
    [undefined, { MILLRACE_STORE: 'none' }, /MILLRACE_STORE/],
    [undefined, {}, /no home directory: choose a directory with --store/],
  ])('is nowhere with %j and %j, and says why', (said, env, why) => {
    expect(placed(said, env)).toEqual({ type: 'none', why: expect.stringMatching(why) });
  });

  it('X10: names the place without the password', () => {
    const url = 'postgresql://user:secret@db.example.com:5433/runs';
    expect(describePlace({ type: 'postgres', url })).toBe('Postgres at db.example.com:5433');
  });

  it('says that a place does not exist', () => {
    const missing = join(import.meta.dirname, 'none');
    expect(missingNote({ type: 'files', directory: missing })).toBe(', which does not exist');
    expect(missingNote({ type: 'sqlite', path: `${missing}.db`, isDefault: false })).toBe(
      ', which does not exist',
    );
    expect(missingNote({ type: 'files', directory: import.meta.dirname })).toBe('');
    expect(missingNote({ type: 'none', why: '' })).toBe('');
  });
});
