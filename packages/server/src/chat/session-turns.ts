import { restoreAsyncContext } from 'millrace';
import { AsyncSubject, concat, defer, EMPTY, finalize, type Observable } from 'rxjs';
import type { BackgroundWork } from './background-work.js';

/** Runs the work on a session after all earlier work on it. */
export type InTurn = <T>(sessionId: string, work: () => Observable<T>) => Observable<T>;

export const createSessionTurns = ({ run }: Pick<BackgroundWork, 'run'>): InTurn => {
  /** The last work of each session: completes when that work, and all before it, has ended. */
  const last = new Map<string, Observable<never>>();
  return (sessionId, work) =>
    defer(() => {
      const before$ = last.get(sessionId) ?? EMPTY;
      const done$ = new AsyncSubject<never>();
      last.set(sessionId, done$);
      let hasStarted = false;
      const end = (): void => {
        done$.complete();
        if (last.get(sessionId) === done$) last.delete(sessionId);
      };
      const turn$ = defer(() => {
        hasStarted = true;
        return work();
      });
      return concat(before$.pipe(restoreAsyncContext()), turn$).pipe(
        finalize(() => {
          // If it is cancelled while it waits, its turn ends once the work before it has ended.
          if (hasStarted) end();
          else run(before$.pipe(finalize(end)));
        }),
      );
    });
};
