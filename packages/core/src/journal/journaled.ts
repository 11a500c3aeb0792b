import { catchError, concat, defer, type Observable, throwError } from 'rxjs';
import type { Arrival } from '../arrivals.js';
import { toMillraceError } from '../errors.js';
import { type CallSetup, call$ } from '../run-call.js';
import { randomId } from '../call-context.js';
import type { View } from '../view.js';
import { begunBefore, callStep } from './call-record.js';
import type { Draining } from './draining.js';
import type { Journal, OpenJournal } from './journal.js';

/** Makes one call of a plan, and writes it down until it is drained. It begins when those of its session have that were made before. */
export const journaled$ = <Seen>(
  journal: Journal,
  setup: CallSetup,
  view: View<Seen>,
  { track$, untilDrained }: Draining,
  arrival: Arrival | undefined,
): Observable<Seen> =>
  defer(() => {
    const { callId = randomId() } = setup.options;
    let hasBegun = false;
    const begin$ = (open: OpenJournal): Observable<Seen> => {
      if (open.isWritten?.(`${callId}/${callStep}`) === true) throw begunBefore(callId);
      const called$ = defer(() => {
        hasBegun = true;
        const opened = {
          journal: untilDrained(open, callId),
          resumes: false,
          ...(arrival !== undefined && { hasArrived: arrival.begun }),
        };
        return call$({ ...setup, opened, options: { ...setup.options, callId } }, view);
      });
      return arrival === undefined ? called$ : concat(arrival.inTurn$, called$);
    };
    const written$ = journal.open$(callId, begin$).pipe(
      // Who listens to the agent hears of a call that could not begin, as of any other.
      catchError((cause: unknown) => {
        const failed$ = throwError(() => toMillraceError(cause));
        if (hasBegun) return failed$;
        // It has no place in its session: it must not end the call that has it.
        const opened = { journal: { step$: () => failed$ }, resumes: false };
        const options = { ...setup.options, callId };
        return call$({ ...setup, session: undefined, opened, options }, view);
      }),
    );
    return track$(written$, callId);
  });
