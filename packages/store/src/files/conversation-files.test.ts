import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { addToConversation, noConversation, readConversation } from './conversation-files.js';
import { newHolderId } from './holder-id.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'conversation-'));
});
afterAll(() => rm(root, { recursive: true }));

it('G2: who was stopped while many others added has added nothing, and hears of it', async () => {
  // As a crash leaves it, and as one that is being written.
  const own = newHolderId();
  const gone = own.split('.').with(1, '9999999').join('.');
  for (const name of [own, gone]) await writeFile(join(root, `${name}.tmp`), 'torn');
  const stopped = await addToConversation(root, noConversation, [{ id: 'm1', text: '1' }]);
  let known = stopped;
  for (let at = 2; at <= 66; at += 1) {
    known = known && (await addToConversation(root, known, [{ id: `m${at}`, text: '1' }]));
  }
  expect(known?.number).toBe(66);
  const late = [{ id: 'late', text: '1' }];
  expect(stopped && (await addToConversation(root, stopped, late))).toBeUndefined();
  expect((await readConversation(root)).messages).toHaveLength(66);
  expect(await readdir(root)).toHaveLength(process.platform === 'linux' ? 4 : 5);
  expect(await readdir(root)).toContain(`${own}.tmp`);
});
