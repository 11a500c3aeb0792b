import { concatMap, defer, filter, lastValueFrom, type Observable, throwError } from 'rxjs';
import { type CallOptions, checkCallOptions } from '../call-options.js';
import { MillraceError, misuse } from '../errors.js';
import type { AgentEvent } from '../events.js';
import { isRecord } from '../json.js';
import type { Reply } from '../reply.js';
import { eventsOf, replyOf, type View } from '../view.js';
import {
  assertGiven,
  type CallRecord,
  callStep,
  isCallRecord,
  unreadableCall,
} from './call-record.js';
import { type Journal, noJournal, type OpenJournal } from './journal.js';

/** What a call that goes on may say otherwise, and must say again where JSON could not hold it. */
export type ResumeOptions = Omit<
  CallOptions,
  'callId' | 'parent' | 'speaks' | 'history' | 'onBusy' | 'maxQueue'
>;

/** How calls go on that were broken off: the process was ended, the connection lost, an error in the way. */
export interface Resumable<out Output = unknown> {
  /**
   * Resumes a call: recorded steps are replayed, reported by `stepReplayed` events alone, then the loop continues. Emits the reply and
   * completes, also for a call that had ended. Pass options that JSON cannot hold again. Errors with `invalidResume` if there is no such
   * call or options are missing, `conflict` if it is running, and `invalidState` if its journal is broken. Cold.
   */
  resume$(callId: string, options?: ResumeOptions): Observable<Reply<Output>>;
  /** As `resume$`, but emits the events of the call, and of the calls below it, from `stepReplayed` of its first step to `postCall`. Cold. */
  resumeStream$(callId: string, options?: ResumeOptions): Observable<AgentEvent>;
  /** The Promise form of `resume$`: it goes on at once. */
  resume(callId: string, options?: ResumeOptions): Promise<Reply<Output>>;
}

/** Makes the ways to go on of one. */
export const resumable = <Output>(
  goOn$: <Seen>(callId: string, options: ResumeOptions, view: View<Seen>) => Observable<Seen>,
): Resumable<Output> => {
  const see$ = <Seen>(callId: string, options: ResumeOptions, view: View<Seen>) => {
    checkCallOptions('resume$()', options);
    if (typeof callId !== 'string' || callId === '') {
      throw misuse('resume$() needs the id of a call.');
    }
    return goOn$(callId, options, view);
  };
  const resume$: Resumable<Output>['resume$'] = (callId, options = {}) =>
    see$(callId, options, replyOf).pipe(filter(holds<Output>));
  return {
    resume$,
    resumeStream$: (callId, options = {}) => see$(callId, options, eventsOf),
    resume: (callId, options) => lastValueFrom(defer(() => resume$(callId, options))),
  };
};

/** The loop has validated the output; this tells the compiler of what. */
const holds = <Output>(reply: Reply): reply is Reply<Output> => isRecord(reply);

/** Opens the journal of a call that has begun, and reads what it has begun with. */
export const resumed$ = <Seen>(
  { journal, agentName }: { readonly journal: Journal; readonly agentName: string },
  callId: string,
  options: ResumeOptions,
  goOn$: (journal: OpenJournal, begun: CallRecord) => Observable<Seen>,
): Observable<Seen> => {
  if (journal === noJournal) throw noneToResume();
  return journal.open$(callId, (open) =>
    open
      .step$(`${callId}/${callStep}`, () => throwError(() => unknownCall(callId)))
      .pipe(
        concatMap((written) => {
          if (!isCallRecord(written)) throw unreadableCall(callId);
          if (written.agent !== agentName) throw ofAnother(callId, written.agent, agentName);
          assertGiven(callId, written, { ...options });
          return goOn$(open, written);
        }),
      ),
  );
};

const noneToResume = (): MillraceError =>
  misuse(
    'resume$() needs a journal: createAgent({ journal: createCallStore(driver) }). Without one, nothing is known of calls that were broken off.',
  );

const unknownCall = (callId: string): MillraceError =>
  new MillraceError(
    'invalidResume',
    `There is no call '${callId}' in the journal: it never began, or has been removed. calls$(store) tells which there are.`,
  );

const ofAnother = (callId: string, agent: string, name: string): MillraceError =>
  new MillraceError(
    'invalidResume',
    `The call '${callId}' is one of the agent '${agent}', and this is '${name}': resume it with that one.`,
  );
