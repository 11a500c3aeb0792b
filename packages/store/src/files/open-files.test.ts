import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createAgent, tool } from '@millrace/core';
import { journal } from '@millrace/core/journal';
import { sessions } from '@millrace/core/sessions';
import { scriptedModel, text, toolUse } from '@millrace/core/testing';
import { lastValueFrom } from 'rxjs';
import { openFiles } from './open-files.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let place: string;
let directory: string;
beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'open-files-'));
  directory = join(place, 'store');
});
afterEach(() => rm(place, { recursive: true }));

const loses: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['moved', () => rename(directory, join(place, 'elsewhere'))],
  ['deleted', () => rm(directory, { recursive: true })],
];
/** The error of a store whose part of this name has gone away. */
const gone = (part: string) => ({
  code: 'store',
  message: `The store in ${join(directory, part)} failed: the directory was moved or deleted while it was in use. Put it back, or open the store where it is now.`,
});

describe('S6: a store whose directory is gone is no conflict, and says which directory', () => {
  it.each(loses)('calls: %s', async (_, lose) => {
    const model = scriptedModel([toolUse('lose')], [text('Done.')]);
    const tools = [tool({ name: 'lose', description: 'Loses the directory.', run: lose })];
    const store = openFiles(directory);
    const agent = createAgent({ model, tools, use: [journal(store.calls)] });
    await expect(agent.call('?')).rejects.toMatchObject(gone('calls'));
    // Nothing happens that is not written down.
    expect(model.requests).toHaveLength(1);
  });

  it.each(loses)('conversations: %s', async (_, lose) => {
    const { memory } = openFiles(directory);
    const model = scriptedModel([text('One.')], [toolUse('lose')], [text('Two.')]);
    const tools = [tool({ name: 'lose', description: 'Loses the directory.', run: lose })];
    const session = sessions(createAgent({ model, tools }), { memory }).open('s');
    await session.call('1?');
    await expect(session.call('2?')).rejects.toMatchObject({
      message: expect.stringContaining(gone('conversations').message),
    });
  });

  it.each(loses)('sessions: %s', async (_, lose) => {
    const { sessions: store } = openFiles(directory);
    const agent = createAgent({ model: scriptedModel() });
    const state = await sessions(agent).open('s').saveState();
    const version = await lastValueFrom(store.save$('s', state, undefined));
    // Another opening has only loaded it.
    const { sessions: other } = openFiles(directory);
    await lastValueFrom(other.load$('s'));
    await lose();
    await expect(lastValueFrom(other.save$('s', state, version))).rejects.toMatchObject(
      gone('sessions'),
    );
    await expect(lastValueFrom(store.save$('s', state, version))).rejects.toMatchObject(
      gone('sessions'),
    );
  });
});

describe('X1: openFiles() without a directory says what to do', () => {
  it.each([
    ['undefined', process.env['MILLRACE_NO_SUCH_DIRECTORY']],
    ['an empty string', ''],
    ['42', 42],
  ])('%s', (given, value) => {
    expect(() => openFiles(value as string)).toThrow(
      expect.objectContaining({
        code: 'config',
        message: `openFiles() needs the path of a directory, such as './data', not ${given}. If it comes from an environment variable, set that, or give a default.`,
      }),
    );
  });
});
