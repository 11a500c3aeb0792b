import { catchError, defer, type Observable, throwError } from 'rxjs';
import { toMillraceError } from '../errors.js';
import { type CallSetup, call$ } from '../run-call.js';
import { randomId } from '../call-context.js';
import type { View } from '../view.js';
import { begunBefore, callStep } from './call-record.js';
import type { Draining } from './draining.js';
import type { Journal, OpenJournal } from './journal.js';

/** Makes one call, and records it until it is drained. */
export const journaled$ = <Seen>(
  journal: Journal,
  setup: CallSetup,
  view: View<Seen>,
  { track$, untilDrained }: Draining,
): Observable<Seen> =>
  defer(() => {
    const { callId = randomId() } = setup.options;
    let hasBegun = false;
    const begin$ = (open: OpenJournal): Observable<Seen> => {
      if (open.isWritten?.(`${callId}/${callStep}`) === true) throw begunBefore(callId);
      hasBegun = true;
      const opened = { journal: untilDrained(open, callId), resumes: false };
      return call$({ ...setup, opened, options: { ...setup.options, callId } }, view);
    };
    const written$ = journal.open$(callId, begin$).pipe(
      // Who listens to the agent hears of a call that could not begin, as of any other.
      catchError((cause: unknown) => {
        const failed$ = throwError(() => toMillraceError(cause));
        if (hasBegun) return failed$;
        // None of its layers begins: it must not end the call that has its session.
        const opened = { journal: { step$: () => failed$ }, resumes: false };
        const options = { ...setup.options, callId };
        return call$({ ...setup, use: [], opened, options }, view);
      }),
    );
    return track$(written$, callId);
  });
