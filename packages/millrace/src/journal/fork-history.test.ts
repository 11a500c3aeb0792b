import { describe, expect, it } from '@jest/globals';
import { firstValueFrom } from 'rxjs';
import { createAgent, inProcessMemory, suspend, textOf, tool, toolResults } from '../index.js';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from '../testing/index.js';
import { createCallStore, fork$, inProcessCalls, journal } from './index.js';
import type { ForkOptions } from './fork.js';
import { sessions } from '../layers/sessions/index.js';

/** An agent that asks somebody in its second call, and has had an answer in its third one, `c`. */
const asked = async () => {
  const store = createCallStore(inProcessCalls());
  const memory = inProcessMemory();
  const ask = tool({ name: 'ask', description: 'Asks.', run: () => suspend() });
  const next: ScriptedAnswer = ({ messages }) => [text(`Heard ${messages.length}.`)];
  const model = scriptedModel(next, [toolCall('ask')], ...Array.from({ length: 9 }, () => next));
  const agent = createAgent({ model, tools: [ask], use: [journal(store)] });
  const session = sessions(agent, { memory }).open('s');
  await session.call('One.');
  await session.call('Two.');
  await session.call(toolResults({ call_1_0: 'Yes.' }), { callId: 'c' });
  await session.call('Four.', { callId: 'd' });
  const fork = async (options: ForkOptions, callId = 'd') => {
    const id = await firstValueFrom(fork$(store, callId, options));
    const whole =
      options.sessionId === undefined ? agent : sessions(agent, { memory }).open(options.sessionId);
    await journal(store).resume(whole, id);
    const heard = JSON.stringify(model.requests.at(-1)?.messages);
    return { id, heard };
  };
  const held = async (id: string) =>
    (await firstValueFrom(memory(id).load$())).map(textOf).filter(Boolean);
  return { fork, held };
};

describe('the history of a fork', () => {
  it.each(['open', '1'])('S7: is that of its call, at %s', async (at) => {
    const { fork, held } = await asked();
    const before = await held('s');
    expect((await fork({ at })).heard).toContain('Heard 1.');
    expect(await held('s')).toEqual(before);
    const { id, heard } = await fork({ at, sessionId: 'new' });
    expect(heard).toContain('Heard 1.');
    const own = await held('new');
    expect(own.slice(0, -2).join()).toBe(before.slice(0, -2).join());
    expect(own.at(-2)).toBe('Four.');
    expect((await fork({ at }, id)).heard.replace(/"id":"[^"]*"/gu, '')).toBe(
      heard.replace(/"id":"[^"]*"/gu, ''),
    );
  });

  it.each(['open', '1'])('S7: holds the results that the call has brought, at %s', async (at) => {
    const { fork } = await asked();
    const { heard } = await fork({ at, sessionId: 'new' }, 'c');
    expect(heard.match(/Yes\./gu)).toHaveLength(1);
  });
});
