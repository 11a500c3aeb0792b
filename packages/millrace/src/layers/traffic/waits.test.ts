import { describe, expect, it } from '@jest/globals';
import { type AgentEvent, createAgent, type Layer, type Model, only } from '../../index.js';
import { type MarbleHelpers, marbles } from '../../testing/index.js';
import { createSemaphore, limitCalls, limitConcurrency, limitRate } from './index.js';

interface Limited {
  readonly model?: (model: Model) => Model;
  readonly use?: readonly Layer[];
}

/** The waits of two calls that start together, as `why`, and either the number ahead or the time waited. */
const waitsOf = (
  { model, scheduler, flush }: MarbleHelpers,
  limited: Limited,
): readonly string[] => {
  const { model: limit = (inner) => inner, use = [] } = limited;
  const agent = createAgent({ model: limit(model(['99ms (tf|)', '99ms (tf|)'])), use });
  const waits: string[] = [];
  const note = (event: AgentEvent): void => {
    if (event.type === 'queued') waits.push(`queued ${event.why} ${event.ahead} at ${event.at}`);
    if (event.type === 'admitted')
      waits.push(`admitted ${event.why} ${event.waitedMs} at ${event.at}`);
  };
  [1, 2].forEach(() =>
    agent.stream$('?', { scheduler }).pipe(only('queued', 'admitted')).subscribe(note),
  );
  flush();
  return waits;
};

describe('a wait for a limit', () => {
  it.each<[string, () => Limited, number]>([
    ['concurrency', () => ({ model: limitConcurrency(1) }), 99],
    ['rate', () => ({ model: limitRate({ requestsPerMinute: 1 }) }), 60_000],
    ['calls', () => ({ use: [limitCalls(createSemaphore({ max: 1 }))] }), 99],
  ])('is reported when it begins and ends: %s', (why, limited, ms) => {
    marbles((helpers) => {
      expect(waitsOf(helpers, limited())).toEqual([
        `queued ${why} 0 at 0`,
        `admitted ${why} ${ms} at ${ms}`,
      ]);
    });
  });
});
