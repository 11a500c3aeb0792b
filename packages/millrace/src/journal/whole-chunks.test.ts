import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, toArray } from 'rxjs';
import { createAgent } from '../agent.js';
import type { AgentEvent } from '../index.js';
import { finish, scriptedModel, text } from '../testing/index.js';
import { createCallStore, inProcessCalls, journal, replay$ } from './index.js';

const shown = (events: readonly AgentEvent[]): readonly unknown[] =>
  events.flatMap((event) =>
    event.type === 'reasoningChunk'
      ? [[event.kind, event.delta, event.citation ?? event.block ?? event.textPhase]]
      : [],
  );

describe('a journal', () => {
  it('X30: replays citations and blocks one by one, in their places among the deltas', async () => {
    const calls = createCallStore(inProcessCalls());
    const block = (id: string) =>
      ({
        type: 'block',
        block: { type: 'vendor', vendor: 'Mine', kind: 'search', data: { id, delta: [] } },
      }) as const;
    const cite = (title: string) => ({ type: 'citation', citation: { title } }) as const;
    const model = scriptedModel([
      block('1'),
      block('2'),
      block('3'),
      { type: 'textStart', phase: 'commentary' },
      text('I look. '),
      { type: 'textStart', phase: 'final_answer' },
      text('It '),
      text('snows.'),
      cite('A'),
      cite('B'),
      cite('C'),
      finish(),
    ]);
    const agent = createAgent({ model, use: [journal(calls)] });
    const live = await lastValueFrom(agent.stream$('?', { callId: 'c' }).pipe(toArray()));
    const replayed = await lastValueFrom(replay$(calls, 'c', { speed: Infinity }).pipe(toArray()));
    expect(shown(live)).toHaveLength(9);
    expect(shown(replayed)).toEqual(shown(live));
  });
});
