import type { Observable } from 'rxjs';
import type { AgentEvent } from './events.js';
import type { Reply } from './reply.js';

export type View<Seen> = (call: {
  readonly events$: Observable<AgentEvent>;
  readonly reply$: Observable<Reply>;
}) => Observable<Seen>;

/** Everything that happens in it. */
export const eventsOf: View<AgentEvent> = ({ events$ }) => events$;

/** Its reply alone: events that nobody else hears are then not made. */
export const replyOf: View<Reply> = ({ reply$ }) => reply$;
