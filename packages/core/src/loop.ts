import { EMPTY, expand, first, of, type OperatorFunction, pipe } from 'rxjs';
import type { Context } from './context.js';
import { deadline } from './deadline.js';
import type { PhaseFactory } from './phase.js';
import { acting } from './phases/acting.js';
import { checkInterrupt } from './phases/check-interrupt.js';
import { limit } from './phases/limit.js';
import { reasoning } from './phases/reasoning.js';
import { storeMemory } from './phases/store-memory.js';
import { type EndedRun, hasEnded, type OpenRun, type Run } from './run.js';
import { subscribeOnTrampoline } from './trampoline.js';

/** One turn: what happens, in order. */
const turn: readonly PhaseFactory[] = [
  checkInterrupt,
  reasoning,
  acting,
  checkInterrupt,
  storeMemory,
  limit,
];

/** The ReAct loop: an open run takes turns until it ends. */
export const loop = (context: Context): OperatorFunction<OpenRun, EndedRun> => {
  const phases = turn.map((create) => create(context));
  const { iterationMs } = context.limits.timeouts;
  const inTime = deadline<Run>(iterationMs, context.scheduler, 'The turn', 'iterationMs');
  // Synchronous turns would nest and overflow the stack: each waits until the one before has returned.
  const inTurn = subscribeOnTrampoline<Run>(context.turns);
  return pipe(
    expand((run: Run) =>
      hasEnded(run)
        ? EMPTY
        : phases.reduce((run$, phase) => run$.pipe(phase), of<Run>(run)).pipe(inTime, inTurn),
    ),
    first(hasEnded),
  );
};
