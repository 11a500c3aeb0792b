import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { appendedTo } from 'millrace/values';
import { packed } from '../memory/stored-messages.js';
import {
  changeConversation,
  type Conversation,
  noConversation,
  readConversation,
} from './conversation-files.js';
import { newHolderId } from './holder-id.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'conversation-'));
});
afterAll(() => rm(root, { recursive: true }));

const append = (known: Conversation, id: string): Promise<Conversation | undefined> =>
  changeConversation(root, known, appendedTo(known.tree, [packed(id, '1')]));

it('G2: who was stopped while many others added has added nothing, and hears of it', async () => {
  // As a crash leaves it, and as one that is being written.
  const own = newHolderId();
  const gone = own.split('.').with(1, '9999999').join('.');
  for (const name of [own, gone]) await writeFile(join(root, `${name}.tmp`), 'torn');
  const stopped = await append(noConversation, 'm1');
  let known = stopped;
  for (let at = 2; at <= 66; at += 1) {
    known = known && (await append(known, `m${at}`));
  }
  expect(known?.number).toBe(66);
  expect(stopped && (await append(stopped, 'late'))).toBeUndefined();
  // Nor has a move of the head or a removal happened.
  const { tree } = stopped ?? noConversation;
  expect(stopped && (await changeConversation(root, stopped, { tree }))).toBeUndefined();
  const removed = { tree: noConversation.tree, removed: 'm1' };
  expect(stopped && (await changeConversation(root, stopped, removed))).toBeUndefined();
  expect((await readConversation(root)).tree.entries).toHaveLength(66);
  expect(await readdir(root)).toHaveLength(process.platform === 'linux' ? 4 : 5);
  expect(await readdir(root)).toContain(`${own}.tmp`);
});
