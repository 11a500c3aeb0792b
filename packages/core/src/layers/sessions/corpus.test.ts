import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { strictHistory } from '../../memories/conversation.js';
import { toolResults } from '../../memories/suspend.js';
import { text } from '../../testing/index.js';
import { sampleAgent, sampleStates } from './sample-sessions.test-support.js';
import { stateVersion } from './session-state.js';
import { sessions, type SessionState } from './index.js';

const corpus = join(import.meta.dirname, '../../../corpus/states');

const filesIn = (folder: string): readonly (readonly [name: string, text: string])[] =>
  readdirSync(join(corpus, folder)).map((file) => [
    file.replace('.json', ''),
    readFileSync(join(corpus, folder, file), 'utf8'),
  ]);

/** Version 1 called tool calls tool uses. */
const inPresentSpelling = (saved: string): SessionState =>
  JSON.parse(
    saved.replaceAll('"tool_use"', '"tool_call"').replaceAll('"toolUse', '"toolCall'),
  ) as SessionState;

const versions = readdirSync(corpus).filter((folder) => /^v\d+$/.test(folder));

describe.each(versions)('S4: the states of %s', (version) => {
  it.each(filesIn(version))('%s is loaded, and saved as what it is', async (_name, saved) => {
    const session = sessions(sampleAgent()).open('s');
    await session.loadState(JSON.parse(saved));
    const state = inPresentSpelling(saved);
    expect(await session.saveState()).toEqual({ ...state, version: stateVersion });
    // It can be saved by another one again, as text.
    const other = sessions(sampleAgent()).open('other');
    await other.loadState(JSON.parse(JSON.stringify(await session.saveState())));
    expect(await other.saveState()).toEqual(await session.saveState());
  });

  it.each(filesIn(version))('%s is a session that goes on', async (name, saved) => {
    const session = sessions(sampleAgent([[text('Gladly.')]])).open('s');
    await session.loadState(JSON.parse(saved));
    const state = inPresentSpelling(saved);
    const input = name === 'suspended' ? toolResults({ one: 'by Ann' }) : 'Go on.';
    expect((await session.call(input, { callId: 'next' })).reason).toBe('answer');
    const { messages, interrupted, approvals } = await session.saveState();
    expect(messages.slice(0, state.messages.length)).toEqual(state.messages);
    expect([interrupted, approvals]).toEqual([false, []]);
  });
});

describe('S4: the corpus', () => {
  it.each(Object.entries(sampleStates))('has what is saved now: %s', async (name, make) => {
    const file = join(corpus, `v${stateVersion}`, `${name}.json`);
    expect(await make()).toEqual(JSON.parse(readFileSync(file, 'utf8')));
  });

  it.each(filesIn('refused'))(
    'X15: refuses %s, says why, and leaves all as it was',
    async (_name, given) => {
      const session = sessions(sampleAgent()).open('s');
      const [, chat = ''] = filesIn('v1').find(([name]) => name === 'groups') ?? [];
      await session.loadState(JSON.parse(chat));
      const before = await session.saveState();
      const { state, error } = JSON.parse(given) as { state: unknown; error: string };
      await expect(session.loadState(state)).rejects.toMatchObject({
        code: 'invalidState',
        message: expect.stringContaining(`The state cannot be used: ${error}`),
      });
      expect(await session.saveState()).toEqual(before);
      expect(Reflect.get({}, 'polluted')).toBeUndefined();
    },
  );

  it.each(filesIn('repaired'))(
    'S11: loads %s, and the next call repairs it, or refuses it where it is strict',
    async (_name, given) => {
      const { state } = JSON.parse(given) as { state: SessionState };
      const agent = sampleAgent([[text('Gladly.')]]);
      const session = sessions(agent).open('s');
      await session.loadState(state);
      expect(await session.saveState()).toEqual(state);
      const strict = session.with(strictHistory());
      await expect(strict.call('Go on.')).rejects.toMatchObject({ code: 'memory' });
      const warnings: string[] = [];
      agent.events$.subscribe((event) => {
        if (event.type === 'warning') warnings.push(event.message);
      });
      expect((await session.call('Go on.')).reason).toBe('answer');
      expect(warnings.join()).toContain('without exactly one result');
      const { messages } = await session.saveState();
      expect(messages.slice(0, state.messages.length)).toEqual(state.messages);
    },
  );
});
