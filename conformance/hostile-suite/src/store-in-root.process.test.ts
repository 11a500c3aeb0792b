import { execFile } from 'node:child_process';
import { existsSync, linkSync, lstatSync, readdirSync, writeFileSync } from 'node:fs';
import { link, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createAgent } from 'millrace';
import { calls$, journal } from 'millrace/journal';
import { scriptedModel, text } from 'millrace/testing';
import { openSqlite } from '@millrace/store/sqlite';
import { markdownFiles } from '@millrace/tools';
import { type FileApprover, fileTools } from '@millrace/tools/files';
import Database from 'libsql';
import { from, lastValueFrom, toArray } from 'rxjs';
import { outputOf } from './driver/run-tool.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(120_000);

type Store = ReturnType<typeof openSqlite>;

const secret = 'the wheel of Ann';
let root: string;
let path: string;
const open: Store[] = [];

beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'store-in-root-')));
  path = join(root, 'mill.db');
  await writeFile(join(root, 'README.md'), 'A wheel.\n');
});
afterEach(async () => {
  await Promise.all(open.splice(0).map(close));
  await rm(root, { recursive: true });
});

const openStore = (at = path): Store => {
  const store = openSqlite(at, { leaseMs: 2_000 });
  open.push(store);
  return store;
};
const close = (store: Store) => lastValueFrom(store.close$(), { defaultValue: undefined });
const call = (store: Store) =>
  createAgent({ model: scriptedModel([text(secret)]), use: [journal(store.calls)] }).call(secret);
const countIn = async (store: Store) =>
  (await lastValueFrom(calls$(store.calls).pipe(toArray()))).length;
const markdownIn = (extensions: readonly string[]) =>
  lastValueFrom(from(markdownFiles(root, { extensions })()).pipe(toArray()));

/** Without the rule for names: stores are hidden with any options. */
const output = (name: string, input: object, approve: true | FileApprover = true) =>
  outputOf(fileTools({ root, isHidden: () => false, approve }), name, { ...input });

/** Opens the store in another process, which makes one call, or runs the program given. */
const elsewhere = async (program = 'await agent.call("?")'): Promise<string> => {
  const script = `
    import { createAgent } from 'millrace';
    import { calls$, journal } from 'millrace/journal';
    import { scriptedModel, text } from 'millrace/testing';
    import { openSqlite } from '@millrace/store/sqlite';
    import { lastValueFrom, toArray } from 'rxjs';
    const store = openSqlite(process.argv[1]);
    const agent = createAgent({ model: scriptedModel([text('Noted.')]), use: [journal(store.calls)] });
    ${program};
    await lastValueFrom(store.close$(), { defaultValue: undefined });`;
  const parameters = ['--input-type=module', '-e', script, path];
  const { stdout } = await promisify(execFile)(process.execPath, parameters, {
    cwd: join(import.meta.dirname, '..'),
  });
  return stdout.trim();
};

const counting = 'console.log((await lastValueFrom(calls$(store.calls).pipe(toArray()))).length)';

const ofStore = [
  ['the database', 'mill.db'],
  ['a hard link to it', 'notes.txt'],
  ['a symbolic link to it', 'link.txt'],
  ['its log', 'mill.db-wal'],
  ['the index of its log', 'mill.db-shm'],
  ['its journal, which does not exist', 'mill.db-journal'],
  ['its log, in other case', 'mill.db-WAL'],
  ['a journal of the hard link', 'notes.txt-journal'],
  ['a symbolic link to its log', 'log-link.txt'],
  ['a file in a directory in the place of its journal', 'mill.db-journal/a/b.txt'],
  ['a hard link to its log', 'log.txt'],
  ['a hard link to the index', 'index.txt'],
] as const;
const links = async (): Promise<void> => {
  await link(path, join(root, 'notes.txt'));
  await link(`${path}-wal`, join(root, 'log.txt'));
  await link(`${path}-shm`, join(root, 'index.txt'));
  await symlink('mill.db', join(root, 'link.txt'));
  await symlink('mill.db-wal', join(root, 'log-link.txt'));
};
/** A tool that changes a file replaces it. */
const identities = (): Readonly<Record<string, number>> =>
  Object.fromEntries(readdirSync(root).map((name) => [name, lstatSync(join(root, name)).ino]));

describe('X17: a store in a directory with other files', () => {
  it.each(ofStore)('%s is neither read nor changed', async (_, name) => {
    const store = openStore();
    await call(store);
    await links();
    const before = identities();
    // A hard link to the log has no name of a store, and no lock.
    const refused = name === 'log.txt' ? 'is not UTF-8 text' : 'it belongs to a store';
    for (const [tool, input] of [
      ['read_file', { path: name }],
      ['list_files', { path: name }],
      ['search_files', { path: name, query: 'wheel' }],
      ['write_file', { path: name, content: 'x' }],
      ['edit_file', { path: name, oldText: 'wheel', newText: 'x' }],
    ] as const) {
      const shown = await output(tool, input);
      expect(shown).not.toContain('of Ann');
      const isSearch = tool === 'search_files' || tool === 'list_files';
      if (existsSync(join(root, name)) ? !isSearch : tool === 'write_file') {
        expect(shown).toContain(refused);
      }
    }
    expect(identities()).toEqual(before);
    expect(await countIn(store)).toBe(1);
  });

  it.each([
    ['open', async () => undefined],
    ['closed', async (store: Store) => void (await close(store))],
  ] as const)('is not listed, searched or suggested while it is %s', async (_, then) => {
    const store = openStore();
    await call(store);
    await link(path, join(root, 'notes.md'));
    await then(store);
    for (const [tool, input] of [
      ['list_files', {}],
      ['read_file', { path: '.' }],
      ['read_file', { path: 'mill.d' }],
      ['read_file', { path: 'note.md' }],
      ['search_files', { query: 'e' }],
    ] as const) {
      const shown = await output(tool, input);
      expect(shown).toContain('README.md');
      expect(shown).not.toMatch(/mill\.db|notes\.md|of Ann/u);
    }
    const documents = await markdownIn(['.md']);
    expect(documents.map(({ path: at }) => at)).toEqual(['README.md']);
  });

  it('shows the database of another program by its name', async () => {
    const other = new Database(join(root, 'other.db'));
    other.exec('create table t (a); insert into t values (1)');
    other.close();
    await writeFile(join(root, 'README.md-wal'), 'not of a store');
    expect(await output('list_files', {})).toBe('README.md\nREADME.md-wal\nother.db');
    expect(await output('read_file', { path: 'README.md-wal' })).toBe('not of a store');
    expect(await output('read_file', { path: 'other.db' })).toContain('is not UTF-8 text');
  });

  it('is refused if it was created after the change was planned, before it was approved', async () => {
    for (const name of ['mill.db', 'mill.db-journal']) {
      const approve: FileApprover = async () => {
        await call(openStore());
        return true;
      };
      const shown = await output('write_file', { path: name, content: 'x' }, approve);
      expect(shown).toContain('belongs to a store');
      expect(await countIn(openStore())).toBeGreaterThan(0);
      await Promise.all(open.splice(0).map(close));
      await rm(path);
    }
  });

  it.each(['missing', 'an empty file'])(
    'is kept if it comes into the place of what is %s while the change is written',
    async (before) => {
      const store = openStore(join(root, 'made.db'));
      await call(store);
      await close(store);
      const database = await readFile(join(root, 'made.db'), 'latin1');
      let came = 0;
      for (let round = 0; round < 30; round += 1) {
        await rm(path, { force: true });
        if (before !== 'missing') await writeFile(path, '');
        const writing = { isOver: false };
        const written = output('write_file', { path: 'mill.db', content: 'x'.repeat(1_000_000) });
        void written.finally(() => (writing.isOver = true));
        while (!writing.isOver && !readdirSync(root).some((it) => it.endsWith('.tmp'))) {
          await setImmediate();
        }
        if (writing.isOver) continue;
        if (before === 'missing') linkSync(join(root, 'made.db'), path);
        else writeFileSync(path, database, 'latin1');
        const shown = await written;
        if (shown.includes('Changed')) continue;
        came += 1;
        expect(await readFile(path, 'latin1')).toBe(database);
      }
      expect(came).toBeGreaterThan(0);
      expect(readdirSync(root).filter((it) => it.endsWith('.tmp'))).toEqual([]);
    },
  );
});

describe('X17, S6: a look at a store that this process has open', () => {
  const look = async (): Promise<void> => {
    for (const [, name] of ofStore) {
      await output('read_file', { path: name });
      await output('write_file', { path: name, content: 'x' });
    }
    await output('search_files', { query: 'wheel' });
    await output('list_files', {});
    await markdownIn(['.db', '.md', '.txt']);
  };

  it('leaves its locks: another process that closes it does not take its log away', async () => {
    const store = openStore();
    await call(store);
    await links();
    await look();
    await elsewhere();
    await call(store);
    // What it has written while the other one was open is not in a log that was deleted.
    expect(await elsewhere(counting)).toBe('3');
    await close(store);
    expect(await elsewhere(counting)).toBe('3');
  });

  it('leaves the lock of a transaction: another process cannot write meanwhile', async () => {
    const store = openStore();
    await call(store);
    await close(store);
    const database = new Database(path);
    database.exec('begin immediate; update calls set owner = null');
    await links();
    await look();
    const program = `
      const writing = agent.call('?');
      console.log(await Promise.race([writing.then(() => 'wrote'), new Promise((resolve) => setTimeout(resolve, 1_000, 'waited'))]));
      process.exit()`;
    expect(await elsewhere(program)).toBe('waited');
    database.exec('commit');
    database.close();
    expect(await elsewhere('await agent.call("?"); console.log("wrote")')).toBe('wrote');
  });

  it('leaves its locks when a second store opens the same file', async () => {
    const [first, second] = [openStore(), openStore()];
    await call(first);
    await call(second);
    await elsewhere();
    await call(first);
    expect(await elsewhere(counting)).toBe('4');
    await Promise.all([close(first), close(second)]);
    expect(await elsewhere(counting)).toBe('4');
  });
});
