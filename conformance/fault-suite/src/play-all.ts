import type { Fault, FaultServer } from '@millrace/fault-server';
import { from, lastValueFrom, mergeMap, tap, toArray } from 'rxjs';
import { type Played, playFault } from './play-fault.js';
import { type Subjects, subjects } from './subjects.js';
import { warmUp } from './warm-up.js';

/** Calls that are under way at once: most of their time they wait. */
const atOnce = 12;

/** Plays faults on each of their wires, and gives what came of them in that order. */
export const playAll = async (
  server: FaultServer,
  faults: readonly Fault[],
  onProgress: (done: number, all: number) => void = () => undefined,
  made: Subjects = subjects,
): Promise<readonly Played[]> => {
  const plays = faults.flatMap((fault) => fault.wires.map((wire) => ({ fault, wire })));
  await warmUp(server, made);
  let done = 0;
  const indexed = await lastValueFrom(
    from(plays).pipe(
      mergeMap(
        async ({ fault, wire }, index) => ({
          index,
          played: await playFault(server, fault, wire, made),
        }),
        atOnce,
      ),
      tap(() => {
        done += 1;
        onProgress(done, plays.length);
      }),
      toArray(),
    ),
  );
  return indexed.sort((a, b) => a.index - b.index).map(({ played }) => played);
};
