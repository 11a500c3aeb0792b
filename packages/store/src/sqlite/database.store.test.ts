import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { OpenDatabase } from './database.js';
import type { Answer } from './messages.js';
import { type DatabaseFile, openDatabase } from './open-database.js';
import { brief, read, write } from './operation.js';
import { runBatch } from './run-batch.js';
import { loadDriver } from './sqlite-driver.js';

let directory: string;
let file: DatabaseFile;
let syncs: unknown[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sqlite-batch-'));
  const driver = await loadDriver();
  if (driver === undefined) throw new Error('There is no driver.');
  file = openDatabase(driver, join(directory, 'x.db'), true);
  file.database.run('create table notes (name text primary key, text text)');
  syncs = [];
});
afterEach(async () => {
  file.database.close();
  await rm(directory, { recursive: true });
});

const add = (database: Pick<OpenDatabase, 'run' | 'get'>, name: string, size = 1): number => {
  syncs.push(Number(database.get('pragma synchronous')?.['synchronous']));
  return database.run('insert into notes values (?, ?)', name, 'x'.repeat(size));
};
const operations = {
  write: write(add),
  brief: brief(add),
  half: write((database, name: string) => {
    add(database, name);
    return add(database, 'a');
  }),
  names: read((database) => database.all('select name from notes').map(({ name }) => name)),
};
const run = (...asked: readonly (readonly unknown[])[]): readonly Answer[] => {
  const answers: Answer[] = [];
  const requests = asked.map(([name, ...given], id) => ({ id, name: String(name), given }));
  runBatch(file.database, requests, operations as never, (some) => answers.push(...some));
  return answers;
};
const failures = (answers: readonly Answer[]): readonly unknown[] =>
  answers.map((answer) => ('failure' in answer ? answer.failure : 'done'));

describe('S6: what queues up for a SQLite database', () => {
  it('reads from one state, no matter what others write between two of its statements', async () => {
    const driver = await loadDriver();
    if (driver === undefined) throw new Error('There is no driver.');
    const other = openDatabase(driver, join(directory, 'x.db'), false);
    const names = (database: Pick<OpenDatabase, 'all'>): unknown =>
      database.all('select name from notes').map(({ name }) => name);
    let written = 0;
    const twice = read((database) => {
      const before = names(database);
      other.database.run('insert into notes values (?, ?)', `n${(written += 1)}`, '');
      return [before, names(database)];
    });
    const answers: Answer[] = [];
    const asked = [1, 2, 3].map((id) => ({ id, name: 'twice', given: [] }));
    runBatch(file.database, asked, { twice } as never, (some) => answers.push(...some));
    expect(answers.map((it) => 'result' in it && it.result)).toEqual([1, 2, 3].map(() => [[], []]));
    expect(run(['names'])).toEqual([{ id: 0, result: ['n1', 'n2', 'n3'] }]);
    other.database.close();
  });

  it('waits for the disk if one of the writes does', () => {
    const [full, normal] = [2, 1];
    run(['brief', 'a']);
    run(['brief', 'b'], ['write', 'c'], ['brief', 'd']);
    run(['brief', 'e']);
    expect(syncs).toEqual([normal, full, full, full, normal]);
  });

  it('is written without what fails', () => {
    const answers = run(['write', 'a'], ['half', 'c'], ['write', 'b']);
    expect(failures(answers)).toEqual(['done', { type: 'sqlite', code: 1555 }, 'done']);
    expect(run(['names'])).toEqual([{ id: 0, result: ['a', 'b'] }]);
  });

  it('is written without what needs more room than there is', () => {
    const { page_count: pages } = file.database.get('pragma page_count') ?? {};
    file.database.get(`pragma max_page_count = ${Number(pages) + 10}`);
    const answers = run(['write', 'a'], ['write', 'big', 1_000_000], ['write', 'b']);
    expect(failures(answers)).toEqual(['done', { type: 'sqlite', code: 13 }, 'done']);
    expect(run(['names'])).toEqual([{ id: 0, result: ['a', 'b'] }]);
  });
});
