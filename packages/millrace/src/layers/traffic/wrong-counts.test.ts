import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, of, toArray } from 'rxjs';
import { createAgent, type Model, type Usage } from '../../index.js';
import { createCallStore, inProcessCalls, journal, replay$ } from '../../journal/index.js';
import { inProcessSessions, keepSessions } from '../sessions/index.js';
import { finish, text } from '../../testing/index.js';

const names = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'] as const;

/** A model of a program or a plug-in, which counts wrongly. */
const counting = (wrong: unknown): Model => ({
  name: 'odd',
  stream$: () => {
    const usage = Object.fromEntries(names.map((it) => [it, wrong])) as Partial<Usage>;
    return of(text('Hi.'), { type: 'usage', usage } as const, finish());
  },
});

describe('wrong counts of a model', () => {
  it.each([NaN, -5, Infinity, -Infinity, '7', null, {}])('%p: count as 0', async (wrong) => {
    const agent = createAgent({ model: counting(wrong) });
    const { usage } = await agent.call('?');
    expect(Object.values(usage)).toEqual([0, 0, 0, 0]);
  });

  it.each([NaN, -5, Infinity, '7', null, {}])(
    '%p: leave a session that can be opened, and a call that can be replayed',
    async (wrong) => {
      const calls = createCallStore(inProcessCalls());
      const store = inProcessSessions();
      const agent = createAgent({ model: counting(wrong), use: [journal(calls)] });
      const session = await keepSessions(agent, store).open('s');
      await session.call('?', { callId: 'c' });
      await session.close();
      const again = await keepSessions(agent, store).open('s');
      expect(again.id).toBe('s');
      await again.close();
      const events = await lastValueFrom(replay$(calls, 'c', { speed: Infinity }).pipe(toArray()));
      expect(events.at(-1)?.type).toBe('postCall');
    },
  );
});
