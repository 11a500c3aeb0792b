import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Agent, createAgent, textOf } from 'millrace';
import { keepSessions, sessions } from 'millrace/sessions';
import { scriptedModel, text } from 'millrace/testing';
import { lastValueFrom } from 'rxjs';
import { openFiles } from '../index.js';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kept-'));
});
afterAll(() => rm(directory, { recursive: true }));

describe('S4: keepSessions with the memory of a store', () => {
  it('opens what was saved, for any memory, and empties it when it is closed', async () => {
    const store = openFiles(directory);
    const { memory } = store;
    const inMemory = (agent: Agent) => sessions(agent, { memory }).open('s');
    const open = (...answers: readonly string[]) => {
      const model = scriptedModel(...answers.map((answer) => [text(answer)]));
      const agent = createAgent({ model });
      return { agent, opened: () => keepSessions(agent, store.sessions, { memory }).open('s') };
    };
    const first = await open('one').opened();
    await first.call('a', { callId: 'a' });
    // A call whose session was not saved.
    await inMemory(open('lost').agent).call('b', { callId: 'b' });
    const { agent, opened } = open('three');
    const again = await opened();
    expect(textOf(await again.call('c', { callId: 'c' }))).toBe('three');
    const { messages } = await again.saveState();
    expect(messages.map(({ id }) => id)).toEqual(['a/input/0', 'a/1', 'c/input/0', 'c/1']);
    await again.close();
    expect((await inMemory(agent).saveState()).messages).toEqual([]);
    const last = await open().opened();
    expect((await last.saveState()).messages).toEqual(messages);
    await lastValueFrom(store.close$(), { defaultValue: undefined });
  });
});
