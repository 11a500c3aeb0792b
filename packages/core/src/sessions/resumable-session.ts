import { defer, lastValueFrom, type MonoTypeOperatorFunction, type Observable } from 'rxjs';
import type { Agent } from '../agent.js';
import { checkCallOptions } from '../call-options.js';
import { misuse } from '../errors.js';
import type { AgentEvent } from '../events.js';
import type { ResumeOptions } from '../journal/resume.js';
import type { StoreOfCalls } from '../journal/stored-call.js';
import type { Reply } from '../reply.js';
import type { Session } from '../session.js';
import type { ContextEntry } from '../tools/context-key.js';
import type { OpenSession } from './open-session.js';
import { resumeSession$ } from './resume-session.js';
import { savedBehind, savedWithReply } from './saved.js';

/** How a session goes on that was loaded as it was before a call: the process was ended in the middle of it, or behind it, before the session was saved. */
export interface ResumableSession<out Output = unknown> {
  /**
   * Goes on with what the state of the session lacks, in the order in which it began, and completes: a call that was broken off goes on as with `agent.resume$`; of one that had ended the session gets what it said and did.
   * One that was aborted was broken off, and goes on, too; one that was interrupted has its reply. Emits the replies, each when the session is saved; none where nothing is lacking. With an id it is that call, whatever has become of it, and its reply comes also where nothing was lacking. All of it may
   * be repeated: nothing is there twice. Errors as `agent.resume$` and calls of the session do, and with `config` where `keepSessions` was not given `calls`. Cold.
   */
  resume$(callId?: string, options?: ResumeOptions): Observable<Reply<Output>>;
  /** As `resume$`, but emits the events of the calls, and of those below them; completes when the session is saved. Cold. */
  resumeStream$(callId?: string, options?: ResumeOptions): Observable<AgentEvent>;
  /** The Promise form of `resume$`: it goes on at once, and gives the last reply, or `undefined` where nothing was lacking. */
  resume(callId?: string, options?: ResumeOptions): Promise<Reply<Output> | undefined>;
}

/** What a session needs to go on. */
export interface Resuming<out Output> {
  readonly agent: Agent<Output>;
  readonly session: Session;
  readonly calls: StoreOfCalls | undefined;
  readonly context: readonly ContextEntry[];
  readonly open: OpenSession;
}

/** Makes the ways in which a session goes on. */
export const resumableSession = <Output>({
  agent,
  session,
  calls,
  context,
  open,
}: Resuming<Output>): ResumableSession<Output> => {
  const save$ = open.save$(session);
  const see$ = <Seen>(
    callId: string | undefined,
    given: ResumeOptions,
    goOn: (callId: string, options: ResumeOptions) => Observable<Seen>,
    saved: (save$: Observable<unknown>) => MonoTypeOperatorFunction<Seen>,
  ): Observable<Seen> => {
    checkCallOptions('resume$()', given);
    if (calls === undefined) throw noCalls();
    if (callId === '') throw misuse('resume$() needs the id of a call, or none.');
    const own = [...context, ...(given.context ?? [])];
    const options: ResumeOptions = own.length === 0 ? given : { ...given, context: own };
    const goOn$ = (id: string): Observable<Seen> => goOn(id, options);
    const goOnAndSave$ = (id: string): Observable<Seen> => goOn$(id).pipe(saved(save$));
    return defer(() => {
      open.assertOpen();
      return resumeSession$({ agent, session, calls, save$, goOn$, goOnAndSave$ }, callId);
    });
  };
  const resume$: ResumableSession<Output>['resume$'] = (callId, options = {}) =>
    see$<Reply<Output>>(callId, options, (id, own) => agent.resume$(id, own), savedWithReply);
  const resumeStream$: ResumableSession['resumeStream$'] = (callId, options = {}) =>
    see$<AgentEvent>(callId, options, (id, own) => agent.resumeStream$(id, own), savedBehind);
  return {
    resume$,
    resumeStream$,
    resume: (callId, options) =>
      lastValueFrom(
        defer(() => resume$(callId, options)),
        { defaultValue: undefined },
      ),
  };
};

const noCalls = () =>
  misuse(
    'resume$() needs the store of calls that is the journal of the agent: keepSessions(agent, store, { calls }).',
  );
