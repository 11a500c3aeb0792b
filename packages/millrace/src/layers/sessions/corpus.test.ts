import { describe, expect, it } from '@jest/globals';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { strictHistory } from '../../memories/repair.js';
import { toolResults } from '../../memories/suspend.js';
import { text } from '../../testing/index.js';
import { changed, refusedStates, unpairedStates } from './refused-states.test-data.js';
import { sampleAgent, sampleStates } from './sample-sessions.test-support.js';
import { sessions, type SessionState } from './index.js';

const corpus = join(import.meta.dirname, '../../../corpus');

const namesIn = (folder: string): readonly string[] =>
  existsSync(join(corpus, folder))
    ? readdirSync(join(corpus, folder)).map((file) => `${folder}/${basename(file, '.json')}`)
    : [];

/** The samples of format 1, which never change, and those whose form is another one today. */
const paths = [...namesIn('states'), ...namesIn('format-1/states')];

/** A sample by its path, or by its name in the form of today. */
const read = (name: string): SessionState => {
  const path = paths.find((it) => it === name || basename(it) === name) ?? name;
  return JSON.parse(readFileSync(join(corpus, `${path}.json`), 'utf8')) as SessionState;
};

const names = [...new Set(paths.map((path) => basename(path)))].sort();

describe('S4: the saved states', () => {
  it.each(Object.entries(sampleStates))('have what is saved now: %s', async (name, make) => {
    expect(await make()).toEqual(read(name));
  });

  it('have no other samples', () => {
    expect(names).toEqual(Object.keys(sampleStates).sort());
  });

  it.each(paths)('S13: %s is loaded, and saved as what it is', async (name) => {
    const session = sessions(sampleAgent()).open('s');
    const state = read(name);
    await session.loadState(state);
    expect(await session.saveState()).toEqual(state);
    // It can be saved by another one again, as text.
    const other = sessions(sampleAgent()).open('other');
    await other.loadState(JSON.parse(JSON.stringify(await session.saveState())));
    expect(await other.saveState()).toEqual(state);
  });

  it.each(paths)('S13: %s is a session that continues', async (name) => {
    const session = sessions(sampleAgent([[text('Gladly.')]])).open('s');
    const state = read(name);
    await session.loadState(state);
    const input = basename(name) === 'suspended' ? toolResults({ one: 'by Ann' }) : 'Go on.';
    expect((await session.call(input, { callId: 'next' })).reason).toBe('answer');
    const { messages, interrupted, approvals } = await session.saveState();
    expect(messages.slice(0, state.messages.length)).toEqual(state.messages);
    expect([interrupted, approvals]).toEqual([false, []]);
  });
});

describe('a state that is damaged', () => {
  it.each(refusedStates)(
    'X15: is refused with the reason, and leaves all as it was: %s',
    async (_name, sample, changes, error) => {
      const session = sessions(sampleAgent()).open('s');
      await session.loadState(read('groups'));
      const before = await session.saveState();
      const state = changed(sample === '' ? {} : read(sample), changes);
      await expect(session.loadState(state)).rejects.toMatchObject({
        code: 'invalidState',
        message: expect.stringContaining(`The state cannot be used: ${error}`),
      });
      expect(await session.saveState()).toEqual(before);
      expect(Reflect.get({}, 'polluted')).toBeUndefined();
    },
  );

  const tools = read('tools');
  const cut = unpairedStates.map(([name, kept]) => {
    const messages = tools.messages.filter((_, index) => kept.includes(index));
    return [name, { ...tools, messages }] as const;
  });
  const other = changed(tools, { 'messages.2.content.0.toolCallId': 'other' }) as SessionState;

  it.each([...cut, ['a result of another tool call', other] as const])(
    'S11: is loaded if a tool call lacks its one result, and the next call repairs it, or refuses it if it is strict: %s',
    async (_name, state) => {
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
