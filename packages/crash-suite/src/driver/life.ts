import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { EffectServer } from '../effects/effect-server.js';
import { type Errand, isSaid, type Outcome, type Said } from '../life/said.js';

/** When a process is killed: when it has come to so many points, and so much later in milliseconds. */
export interface Kill {
  readonly atPoint: number;
  readonly laterMs: number;
}

/** What a process has come to. */
export interface Life {
  readonly name: string;
  readonly wasKilled: boolean;
  /** Points that it has come to: effects that have arrived are among them. */
  readonly points: number;
  readonly outcomes: readonly Outcome[];
  readonly said: readonly Said[];
  readonly wrongs: readonly string[];
}

/** No errand takes so long. */
const limitMs = 60_000;

/** Sends a process on an errand, and kills it where that is wanted. It needs this package to be built. */
export const live = async (
  errand: Errand,
  server: EffectServer,
  kill: Kill | undefined,
): Promise<Life> => {
  const child = fork(new URL('../../dist/life/process.js', import.meta.url), {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  });
  const said: Said[] = [];
  let points = 0;
  let isKilling = false;
  const end = (): boolean => child.kill('SIGKILL');
  const come = (): void => {
    points += 1;
    if (kill === undefined || isKilling || points < kill.atPoint) return;
    isKilling = true;
    if (kill.laterMs === 0) end();
    else setTimeout(end, kill.laterMs);
  };
  server.onArrival(errand.life, come);
  child.on('message', (message) => {
    if (!isSaid(message)) return;
    said.push(message);
    if (message.type === 'point') come();
  });
  const limit = setTimeout(end, limitMs);
  // What it has said is all heard when its channel is closed.
  const gone = Promise.all([once(child, 'exit'), once(child, 'disconnect')]);
  child.send(errand);
  const [[code, signal]] = await gone;
  clearTimeout(limit);
  server.onArrival(errand.life, undefined);
  const wasKilled = signal === 'SIGKILL' && isKilling;
  const failures = said.flatMap((it) =>
    it.type === 'failed' ? [`${it.callId}: ${it.message}`] : [],
  );
  return {
    name: errand.life,
    wasKilled,
    points,
    said,
    outcomes: said.flatMap((it) => (it.type === 'ended' ? [it.outcome] : [])),
    wrongs:
      wasKilled || code === 0
        ? failures
        : [...failures, `${errand.life} has ended by itself (${signal ?? code ?? 'unknown'})`],
  };
};
