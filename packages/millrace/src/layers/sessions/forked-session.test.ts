import { describe, expect, it } from '@jest/globals';
import { firstValueFrom, lastValueFrom, of } from 'rxjs';
import { createAgent } from '../../agent.js';
import { createCallStore, fork$, inProcessCalls, journal } from '../../journal/index.js';
import { windowMemory } from '../../memories/index.js';
import { inProcessMemory, type MemoryFactory } from '../../memories/in-process-memory.js';
import { textOf } from '../../values/message.js';
import { agentTool } from '../teams/index.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../../testing/index.js';
import { sessions } from './index.js';
import { kept$ } from '../../values/memory.js';
import { emptyTree } from '../../values/message-tree.js';

/** An agent that asks a helper twice in its session `notes`, and a helper that answers with what it has heard there. */
const place = (memory: MemoryFactory = inProcessMemory()) => {
  const store = createCallStore(inProcessCalls());
  const durable = journal(store);
  const heard: string[] = [];
  const hear: ScriptedAnswer = ({ messages }) => {
    const asked = messages.filter(({ role }) => role === 'user').map(textOf);
    heard.push(asked.join(' '));
    return [text(`Heard ${asked.length}.`)];
  };
  const many = (answer: ScriptedAnswer) =>
    scriptedModel(...Array.from({ length: 20 }, () => answer));
  const helper = createAgent({ name: 'helper', model: many(hear) });
  const asks = agentTool(helper, { description: 'Helps.', session: 'notes', memory });
  const agent = createAgent({
    model: many(({ messages }) => {
      const done = messages.filter(({ role }) => role === 'tool').length;
      return done < 2 ? [toolCall('helper', { user_prompt: `q${done + 1}` })] : [text('Done.')];
    }),
    tools: [asks],
    use: [durable],
  });
  const held = async (id: string) => {
    const { entries } = await firstValueFrom(kept$(memory(id)));
    return entries.map(({ message }) => textOf(message));
  };
  const fork = (at: string, callId: string, from = 'c') =>
    lastValueFrom(fork$(store, from, { at, callId }));
  return { agent, durable, inSession: sessions(helper, { memory }).open, heard, held, fork };
};

describe('S7: the session of an agent below a fork', () => {
  const all = ['q0', 'Heard 1.', 'q1', 'Heard 2.', 'q2', 'Heard 3.'];
  const begun = async (memory?: MemoryFactory) => {
    const made = place(memory);
    await made.inSession('notes').call('q0');
    await made.agent.call('?', { callId: 'c' });
    expect(await made.held('notes')).toHaveLength(all.length);
    made.heard.length = 0;
    return made;
  };

  it.each([
    ['1', ['q0 q1', 'q0 q1 q2']],
    ['1/0', ['q0 q1', 'q0 q1 q2']],
    ['call_1_0/1', ['q0 q1', 'q0 q1 q2']],
    ['2', ['q0 q1 q2']],
    ['2/0', ['q0 q1 q2']],
    ['call_2_0/reply', []],
  ])('continues at %s with what it held there, in a copy of its own', async (at, expected) => {
    const { agent, durable, heard, held, fork } = await begun();
    await durable.resume(agent, await fork(at, 'f'));
    expect(heard).toEqual(expected);
    expect(await held('notes')).toEqual(all);
    expect(await held('notes~f')).toEqual(all);
  });

  it('is not begun by a fork that asks it nothing', async () => {
    const { agent, durable, held, fork } = await begun();
    await durable.resume(agent, await fork('3', 'f'));
    expect([await held('notes'), await held('notes~f')]).toEqual([all, []]);
  });

  it('has what was said in it since by others', async () => {
    const { agent, durable, inSession, heard, held, fork } = await begun();
    await inSession('notes').call('q9');
    heard.length = 0;
    await durable.resume(agent, await fork('1', 'f'));
    expect(heard).toEqual(['q0 q9 q1', 'q0 q9 q1 q2']);
    expect((await held('notes')).at(-2)).toBe('q9');
  });

  it('is a copy of the copy in a fork of a fork', async () => {
    const { agent, durable, heard, held, fork } = await begun();
    await durable.resume(agent, await fork('2', 'f'));
    heard.length = 0;
    await durable.resume(agent, await fork('2', 'g', 'f'));
    expect(heard).toEqual(['q0 q1 q2']);
    for (const id of ['notes', 'notes~f', 'notes~g']) expect(await held(id)).toEqual(all);
    await durable.resume(agent, await fork('3', 'h', 'f'));
    await durable.resume(agent, await fork('2', 'i', 'h'));
    expect(await held('notes~i')).toEqual(all);
  });

  it('shows no more than its memory does, and keeps all', async () => {
    const { agent, durable, heard, held, fork } = await begun(
      windowMemory(inProcessMemory(), { turns: 1 }),
    );
    await durable.resume(agent, await fork('2', 'f'));
    expect(heard.join()).not.toContain('q0');
    expect(await held('notes~f')).toHaveLength(6);
    expect(await held('notes')).toHaveLength(6);
  });

  it('can be replaced without the one that it comes from', async () => {
    const { agent, durable, inSession, held, fork } = await begun();
    await durable.resume(agent, await fork('2', 'f'));
    const { memory } = inSession('notes~f');
    await lastValueFrom(memory.replace$?.(emptyTree) ?? of(0), { defaultValue: 0 });
    expect(await held('notes')).toEqual(all);
  });
});
