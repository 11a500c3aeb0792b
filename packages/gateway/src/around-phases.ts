import type { LoopCall } from 'millrace/call';
import type { Context, OpenRun, PhaseFactory, Run } from 'millrace/phases';
import { concatMap, type Observable, of, take } from 'rxjs';

/** The phases that wrappers stand for in the list of a turn. */
const standIns = new WeakMap<PhaseFactory, PhaseFactory>();

/** Wraps phases of the kernel in the list of a turn, also if another layer has wrapped them before. */
export const aroundPhases =
  (
    places: readonly PhaseFactory[],
    around: (inner: PhaseFactory, place: PhaseFactory) => PhaseFactory,
  ) =>
  (phases: readonly PhaseFactory[]): readonly PhaseFactory[] =>
    phases.map((phase) => {
      const place = places.find((it) => phase === it || standIns.get(phase) === it);
      if (place === undefined) return phase;
      const wrapped = around(phase, place);
      standIns.set(wrapped, place);
      return wrapped;
    });

/** A phase that runs another one for a call that depends on the run. */
export const inCall = (
  inner: PhaseFactory,
  change: (context: Context, call: LoopCall, run: OpenRun) => Observable<LoopCall>,
): PhaseFactory => {
  const changing: PhaseFactory = (context, call) =>
    concatMap((run: Run) =>
      run.status === 'open'
        ? change(context, call, run).pipe(
            take(1),
            concatMap((own) => of<Run>(run).pipe(inner(context, own))),
          )
        : of(run),
    );
  return changing;
};
