import { type Observable, Subject } from 'rxjs';
import type { AgentEvent, Listener } from './events.js';
import { createTrampoline } from './trampoline.js';

/** A stream of events that runs whether or not somebody listens. */
export interface HotEvents extends Listener {
  /** Hot. Never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
}

/** Makes a hot stream that shows one event to all its subscribers before it shows the next to any. */
export const createHotEvents = (): HotEvents => {
  const subject = new Subject<AgentEvent>();
  const deliver = createTrampoline();
  return {
    events$: subject.asObservable(),
    get hears() {
      return subject.observed;
    },
    next: (event) => {
      if (subject.observed) deliver(() => subject.next(event));
    },
  };
};
