import type { Arrival } from '../effects/effect-server.js';
import { outermost } from '../script/script-agent.js';
import type { Life } from './life.js';

/** Where a call, or a tool of it, was when its process was killed. */
export const hitNames = [
  'before anything is written down',
  'in a message',
  'between steps',
  'between intent and effect',
  'between effect and record',
  'at the end',
] as const;
export type Hit = (typeof hitNames)[number];

/** Tells what was hit, by what each call did first when it went on. */
export const hitsOf = (
  lives: readonly Life[],
  arrivals: (callId: string) => readonly Arrival[],
): readonly Hit[] =>
  lives.flatMap(({ said }, index) => {
    const before = new Set(lives.slice(0, index).map((life) => life.name));
    return said.flatMap((it): readonly Hit[] => {
      if (it.type === 'resumed') return firsts[it.first] ?? ['between steps'];
      if (it.type !== 'uncertain') return [];
      const had = arrivals(outermost(it.key)).some(
        ({ key, life }) => key === it.key && before.has(life),
      );
      return [had ? 'between effect and record' : 'between intent and effect'];
    });
  });

/** What a tool was at is told by itself. */
const firsts: Readonly<Record<string, readonly Hit[]>> = {
  nothing: ['before anything is written down'],
  messageDiscarded: ['in a message'],
  uncertain: [],
  postCall: ['at the end'],
};
