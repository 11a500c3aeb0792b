import type { Listener, AgentEvent } from '../events.js';
import { type Observable, Subject, noop } from 'rxjs';
import { createTrampoline } from '../flow/trampoline.js';
import { toMillraceError } from '../values/errors.js';
import { sharedEvents } from '../flow/shared-events.js';

interface HotEvents extends Listener {
  /** Hot. Never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
}

export const createHotEvents = (): HotEvents => {
  const subject = new Subject<AgentEvent>();
  const deliver = createTrampoline();
  let report: Parameters<Listener['next']>[1] = noop;
  // Taken when an event is delivered: an async subscriber may fail later, in the time of another call.
  const failing = () => {
    const reportTo = report;
    return (cause: unknown): void => {
      const error = toMillraceError(cause, 'unknown', 'A subscriber of events$ failed');
      reportTo({ type: 'handlerError', of: 'events$', name: 'subscriber', error });
    };
  };
  return {
    events$: sharedEvents(subject, failing),
    isShared: true,
    hears: () => subject.observed,
    next: (event, reportOf) => {
      if (!subject.observed) return;
      deliver(() => {
        report = reportOf;
        subject.next(event);
        // An agent does not hold its last call.
        report = noop;
      });
    },
  };
};
