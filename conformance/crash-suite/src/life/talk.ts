import type { AgentEvent } from 'millrace';
import type { Journal } from 'millrace/journal';
import type { KeptSession, Session } from 'millrace/sessions';
import { EMPTY, type Observable } from 'rxjs';

/** A session in which a call is led. */
export interface Talk extends Pick<Session, 'stream$' | 'steer$' | 'interrupt'> {
  /** Goes on with one call. */
  resumeStream$(callId: string): Observable<AgentEvent>;
  /** Goes on with whatever the session lacks. */
  readonly lacking$: Observable<AgentEvent>;
}

/** The session of an agent whose memory outlasts the process. */
export const talkOf = (session: Session, journal: Journal): Talk => ({
  ...session,
  resumeStream$: (callId) => journal.resumeStream$(session, callId),
  lacking$: EMPTY,
});

/** A session that is kept. */
export const keptTalk = (session: KeptSession): Talk => ({
  ...session,
  lacking$: session.resumeStream$(),
});
