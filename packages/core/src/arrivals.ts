import { AsyncSubject, concat, EMPTY, type Observable } from 'rxjs';

/** A call of a session that is to begin. */
export interface Arrival {
  /** Completes when those have begun, or left, that came before. */
  readonly inTurn$: Observable<never>;
  /** The call has begun, or has left. */
  readonly begun: () => void;
}

/** Lets the calls of each session begin in the order in which they were made, however long the journal of each takes to open. */
export const createArrivals = (): ((sessionId: string) => Arrival) => {
  const lines = new Map<string, { readonly all$: Observable<never>; readonly waiting: number }>();
  return (sessionId) => {
    const { all$: before$, waiting } = lines.get(sessionId) ?? { all$: EMPTY, waiting: 0 };
    const begun$ = new AsyncSubject<never>();
    lines.set(sessionId, { all$: concat(before$, begun$), waiting: waiting + 1 });
    let isWaiting = true;
    return {
      inTurn$: before$,
      begun: () => {
        if (!isWaiting) return;
        isWaiting = false;
        const line = lines.get(sessionId);
        if (line === undefined || line.waiting === 1) lines.delete(sessionId);
        else lines.set(sessionId, { ...line, waiting: line.waiting - 1 });
        begun$.complete();
      },
    };
  };
};
