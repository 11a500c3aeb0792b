import type { Bench } from '../bench.js';
import type { Errand } from '../life/said.js';
import { type Life, startLife } from './life.js';

/** When a process is killed: when it has come to so many points, and so much later in milliseconds. */
export interface Kill {
  readonly atPoint: number;
  readonly laterMs: number;
  /** Whether it is killed when it is written down that a call was interrupted, and at no point. */
  readonly atInterrupt: boolean;
}

/** What a process has come to, and over how many points: effects that have arrived are among them. */
export interface CountedLife extends Life {
  readonly points: number;
}

/** Sends a process on an errand, and kills it where that is wanted. */
export const live = async (errand: Errand, bench: Bench, kill?: Kill): Promise<CountedLife> => {
  let points = 0;
  const life = startLife(errand, bench, (what, said) => {
    const last = said.at(-1);
    const isInterrupt = last?.type === 'deed' && last.deed === 'isInterrupted';
    const isPoint = what === 'point' || what === 'arrival';
    if (isPoint) points += 1;
    if (kill === undefined) return;
    const isTime = kill.atInterrupt
      ? what === 'deed' && isInterrupt
      : isPoint && points === kill.atPoint;
    if (!isTime) return;
    if (kill.laterMs === 0) life.kill();
    else setTimeout(life.kill, kill.laterMs);
  });
  life.begin();
  return { ...(await life.ended), points };
};
