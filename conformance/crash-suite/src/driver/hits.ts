import type { Arrival } from '../effects/effect-server.js';
import { outermost } from '../script/script-agent.js';
import type { Life } from './life.js';

/** Where a call, or a tool of it, was when its process was killed. */
export const hitNames = [
  'before anything is written down',
  'before it has gone on',
  'in a message',
  'between steps',
  'between intent and effect',
  'between effect and record',
  'behind an interrupt',
  'at the end',
] as const;
export type Hit = (typeof hitNames)[number];

/** Tells what was hit, by what each call did first when it went on, and by whether it has come to that. */
export const hitsOf = (
  lives: readonly Life[],
  callIds: readonly string[],
  arrivals: (callId: string) => readonly Arrival[],
): readonly Hit[] =>
  lives.flatMap(({ said, wasKilled, outcomes }, index) => {
    const hasGoneOn = (callId: string): boolean =>
      said.some((it) => it.type === 'resumed' && outermost(it.callId) === callId);
    const waiting = wasKilled && index > 0 ? callIds.filter((callId) => !hasGoneOn(callId)) : [];
    const before = new Set(lives.slice(0, index).map((life) => life.name));
    const hits = said.flatMap((it): readonly Hit[] => {
      if (it.type === 'resumed') return firsts[it.first] ?? ['between steps'];
      if (it.type !== 'uncertain') return [];
      const had = arrivals(outermost(it.key)).some(
        ({ key, life }) => key === it.key && before.has(life),
      );
      return [had ? 'between effect and record' : 'between intent and effect'];
    });
    const ended = new Set(outcomes.map(({ callId }) => callId));
    const interrupted = said.flatMap((it): readonly Hit[] =>
      wasKilled && it.type === 'deed' && it.deed === 'isInterrupted' && !ended.has(it.callId)
        ? ['behind an interrupt']
        : [],
    );
    return [...waiting.map((): Hit => 'before it has gone on'), ...interrupted, ...hits];
  });

/** What a tool was at is told by itself. */
const firsts: Readonly<Record<string, readonly Hit[]>> = {
  nothing: ['before anything is written down'],
  messageDiscarded: ['in a message'],
  uncertain: [],
  postCall: ['at the end'],
};
