import type { Observable } from 'rxjs';

/**
 * Runs the steps of a call. `id` is a position (`callId/iteration`, `callId/iteration/index`), the same
 * on a resumed run; what `work` emits is plain JSON. A journal that remembers can answer a step it
 * knows without running its work.
 */
export interface Journal {
  step$<T>(id: string, work: () => Observable<T>): Observable<T>;
}

/** The journal of a call that is not to be resumed: it runs every step and remembers none. */
export const noJournal: Journal = { step$: (_id, work) => work() };
