import { catchError, defer, type Observable, throwError } from 'rxjs';
import { toMillraceError } from '../errors.js';
import { call$ } from '../call.js';
import { randomId } from '../call-scope.js';
import type { PlannedCall } from '../planned-call.js';
import type { View } from '../view.js';
import type { Journal, OpenJournal } from './journal.js';

/** Makes one call of a plan, and writes it down. */
export const journaled$ = <Seen>(
  journal: Journal,
  plan: PlannedCall,
  view: View<Seen>,
): Observable<Seen> =>
  defer(() => {
    const { callId = randomId() } = plan.options;
    let hasBegun = false;
    const begin$ = (open: OpenJournal): Observable<Seen> => {
      hasBegun = true;
      const opened = { journal: open, resumes: false };
      return call$({ ...plan, opened, options: { ...plan.options, callId } }, view);
    };
    return journal.open$(callId, begin$).pipe(
      // Who listens to the agent hears of a call that could not begin, as of any other.
      catchError((cause: unknown) => {
        const failed$ = throwError(() => toMillraceError(cause));
        return hasBegun ? failed$ : begin$({ step$: () => failed$ });
      }),
    );
  });
