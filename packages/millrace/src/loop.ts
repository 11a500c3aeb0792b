import { EMPTY, expand, filter, type OperatorFunction, pipe } from 'rxjs';
import { andThen, type Eventual, deferWork } from './flow/eventual.js';
import type { LoopCall } from './seams/call.js';
import type { Context, PhaseFactory } from './seams/layer.js';
import { deadline } from './flow/deadline.js';
import { MillraceError } from './values/errors.js';
import { acting } from './phases/acting.js';
import { checkInterrupt, limit, storeMemory } from './phases/limit.js';
import { checkedPhase } from './phases/phase-list.js';
import { reasoning } from './phases/reasoning.js';
import { runPhase } from './seams/phase.js';
import { type EndedRun, hasEnded, type Run } from './run.js';
import { createTrampoline, deferWorkOn } from './flow/trampoline.js';
import { cell } from './step.js';
import { loopProgress } from './seams/progress.js';

/** The phases of a turn, in order: an interrupt ends it before the model is asked and after the tools; messages are stored before `limit` ends the run, as `onLimit` says. */
export const nativePhases: readonly PhaseFactory[] = Object.freeze([
  checkInterrupt,
  reasoning,
  acting,
  checkInterrupt,
  storeMemory,
  limit,
]);

/** Runs turns until a phase has ended the run. Emits the ended run. */
export const loop = (
  context: Context,
  call: LoopCall,
  turn: readonly PhaseFactory[],
): OperatorFunction<Run, EndedRun> => {
  const latest = context.local(loopProgress);
  const phases = turn.map((create) =>
    (nativePhases.includes(create) ? create : checkedPhase(create))(context, call),
  );
  const { iterationMs } = call.limits.timeouts;
  const inTime = deadline<Run>(iterationMs, context.scheduler, 'The turn', 'iterationMs');
  // Synchronous turns would nest and overflow the stack: each waits until the previous one has returned.
  const trampoline = context.local(turns);
  const runTurn = phases.reduceRight<(run: Run) => Eventual<Run>>(
    (next, phase) => (run) => andThen(runPhase(phase, run), next),
    (run) => run,
  );
  return pipe(
    expand((run: Run, turnsBefore) => {
      // Each turn must have asked the model.
      if (run.iteration < turnsBefore && !hasEnded(run)) throw stuck();
      latest.run = run;
      if (hasEnded(run)) return EMPTY;
      return deferWorkOn(trampoline, () => deferWork(() => runTurn(run)).pipe(inTime));
    }),
    filter(hasEnded),
  );
};

/** Starts the turns of a family of calls one after another, never within each other. They may overlap while they wait. */
const turns = cell('family', createTrampoline);

/** A turn that neither asks nor ends would repeat forever. */
const stuck = (): MillraceError =>
  new MillraceError(
    'invalidState',
    'A turn of the loop neither asked the model nor ended the run. Its phases need `reasoning`, or a phase that asks the model.',
  );
