import { expect, it } from '@jest/globals';
import type { OpenDatabase } from './database.js';
import type { Answer } from './messages.js';
import { brief, read, write } from './operation.js';
import { runBatch } from './run-batch.js';

const inOrder = (names: readonly string[]): readonly string[] => {
  const done: string[] = [];
  const unused = (): never => {
    throw new Error('No statement runs.');
  };
  const database: OpenDatabase = {
    ...{ all: unused, get: unused, run: unused, close: unused, waitForDisk: () => undefined },
    transaction: (work) => {
      done.push('begin');
      const result = work();
      done.push('commit');
      return result;
    },
    part: (work) => work(),
    snapshot: (work) => {
      done.push('look');
      return work();
    },
  };
  const note = (_: unknown, name: string) => done.push(name);
  const operations = { read: read(note), write: write(note), brief: brief(note) };
  const requests = names.map((name, id) => ({ id, name: name.split(' ')[0] ?? '', given: [name] }));
  const answers: Answer[] = [];
  runBatch(database, requests, operations as never, (some) => answers.push(...some));
  expect(answers.map(({ id }) => id).sort()).toEqual(requests.map(({ id }) => id));
  return done;
};

it.each([
  [
    ['read 1', 'read 2'],
    ['look', 'read 1', 'read 2'],
  ],
  [
    ['read 1', 'write 1', 'read 2', 'brief 2', 'read 3'],
    ['look', 'read 1', 'begin', 'write 1', 'brief 2', 'commit', 'look', 'read 2', 'read 3'],
  ],
  [
    ['brief 1', 'read 1'],
    ['begin', 'brief 1', 'commit', 'look', 'read 1'],
  ],
])('S6: a read of %j sees what was asked for before it', (asked, done) => {
  expect(inOrder(asked)).toEqual(done);
});
