import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Bench } from '../bench.js';
import { type Errand, isSaid, type Outcome, type Said } from '../life/said.js';

/** What a process has come to. */
export interface Life {
  readonly name: string;
  readonly wasKilled: boolean;
  readonly outcomes: readonly Outcome[];
  readonly said: readonly Said[];
  readonly failures: readonly Extract<Said, { readonly type: 'failed' }>[];
  /** How it has ended, where nobody has killed it and it has not ended well. */
  readonly wrongs: readonly string[];
}

/** A process that is under way. */
export interface RunningLife {
  /** Sends it on its errand. */
  readonly begin: () => void;
  readonly kill: () => void;
  /** Has it leave its calls as they are, give them back and end. */
  readonly leave: () => void;
  readonly ended: Promise<Life>;
}

/** No errand takes so long. */
const limitMs = 120_000;

/** Starts a process, and hears what it says and what it does at the server. */
export const startLife = (
  errand: Errand,
  { server, program, children }: Pick<Bench, 'server' | 'program' | 'children'>,
  hear: (what: Said['type'] | 'arrival', life: readonly Said[]) => void,
): RunningLife => {
  const child = fork(program, { execArgv: [] });
  children.add(child);
  const said: Said[] = [];
  let isKilled = false;
  const kill = (): void => {
    isKilled = child.kill('SIGKILL') || isKilled;
  };
  child.on('message', (message) => {
    if (!isSaid(message)) return;
    said.push(message);
    hear(message.type, said);
  });
  server.onArrival(errand.life, () => hear('arrival', said));
  const limit = setTimeout(() => child.kill('SIGKILL'), limitMs);
  const ended = async (): Promise<Life> => {
    // What it has said is all heard when its channel is closed.
    await Promise.all([once(child, 'exit'), once(child, 'disconnect')]);
    const { exitCode, signalCode } = child;
    clearTimeout(limit);
    children.delete(child);
    server.onArrival(errand.life, undefined);
    const wasKilled = signalCode === 'SIGKILL' && isKilled;
    return {
      name: errand.life,
      wasKilled,
      said,
      outcomes: said.flatMap((it) => (it.type === 'ended' ? [it.outcome] : [])),
      failures: said.flatMap((it) => (it.type === 'failed' ? [it] : [])),
      wrongs:
        wasKilled || exitCode === 0
          ? []
          : [`${errand.life} has ended by itself (${signalCode ?? String(exitCode)})`],
    };
  };
  return {
    kill,
    begin: () => child.send(errand),
    leave: () => child.send('leave'),
    ended: ended(),
  };
};
