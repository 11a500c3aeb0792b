import type { AsyncSubject, Observable, Subject } from 'rxjs';
import type { JoinableDemand } from './demand.js';
import type { MillraceError } from './errors.js';
import type { AgentEvent, Listener } from './events.js';
import type { Interceptor } from './interceptor.js';
import type { Interruption } from './interruption.js';
import type { Fork } from './journal/call-record.js';
import type { OpenJournal } from './journal/journal.js';
import type { Replaying } from './journal/replaying.js';
import type { Layer, LayerContext } from './layer.js';
import type { Reply } from './reply.js';
import type { Spending } from './spending.js';
import type { Cell, Perform, Recorded } from './step.js';
import type { Approver } from './tools/types.js';
import type { Trampoline } from './trampoline.js';

/** What one call owns, shares with its layers, and hands down to the calls that its tools make. It is made once, and never changes. */
export interface CallContext extends LayerContext {
  /** What happens in the call from now on. Hot; ends with the call, and errors where it does. */
  readonly events$: Subject<AgentEvent>;
  /** How the call ends: with its reply behind the last event, or with its error. */
  readonly reply$: AsyncSubject<Reply>;
  /** Whether an interrupt can come. A call that nobody can interrupt needs nothing that waits for it. */
  readonly isInterruptible: boolean;
  /** Holds the step of the call above whose tool makes this one; call what it returns once. */
  readonly holdAbove: () => () => void;
  readonly demand: JoinableDemand;
  /** Those who hear this call, and all calls below it. */
  readonly listeners: readonly Listener[];
  /** Delivers the events of a whole family of calls, one after the other. */
  readonly deliver: Trampoline;
  /** Runs the turns of a whole family of calls, one after the other: nested ones would overflow the stack. */
  readonly turns: Trampoline;
  /** The ids of a whole family of calls that is written down. It only grows. */
  readonly family: Set<string>;
  /** Where the steps of a whole family of calls are written down. */
  readonly journal: OpenJournal;
  /** What the call tells again, where it goes on from where it was broken off. */
  readonly replaying: Replaying | undefined;
  /** Numbers the events of a whole family of calls. */
  readonly nextSeq: () => number;
  /** Decide on every run of a tool, here and below. */
  readonly approvers: readonly Approver[];
  /** The interruption of the call above, where there is one. */
  readonly above: Interruption | undefined;
  /** The call above has been interrupted, and begins no other one. */
  readonly isLate: boolean;
  /** The interceptors of those whose words the call's are: its own, and those of the calls above that it speaks for. */
  readonly voice: readonly Interceptor[];
  /** Counts a cost in the calls above, if there are any. */
  readonly spend: ((spending: Spending) => void) | undefined;
  /** The layers of the call, outermost first. */
  readonly layers: readonly Layer[];
  /** What is done once the last event has been heard, or the call was left. */
  readonly afterwards: (() => void)[];
  /** The cells of a whole family of calls. */
  readonly cells: Map<Cell<unknown>, unknown>;
  /** Tells the tool that makes the call that it was stopped, and all above it with it. */
  readonly reportHalt: (error: MillraceError) => void;
  /** The forks that have led to the outermost call. */
  readonly forks: readonly Fork[];
  readonly interceptors: readonly Interceptor[];
  /** The journal of the call. */
  readonly steps: CallSteps;
}

/** The journal that has been opened for a call. */
export interface OpenedJournal {
  readonly journal: OpenJournal;
  /** The call has been broken off, and goes on. */
  readonly resumes: boolean;
}

/** An id for a call that has not been given one. */
export const randomId = (): string => crypto.randomUUID().replaceAll('-', '').slice(0, 16);

/** The journal of one call: a layer around its steps, and what comes before them. */
export interface CallSteps extends Recorded {
  /** Records the steps, and replays those that were recorded. Without a journal there is none. */
  readonly layer: Layer | undefined;
  /** Records what comes before the call can be interrupted: its beginning, and its place in the session. */
  readonly begin: Perform;
  /** Records an interrupt when it comes, with its place. Errors if that fails. */
  readonly interrupt$: Observable<never>;
  /** Reads whether the call was interrupted before it was cut off: it is interrupted again, at the same place. */
  readonly recall$: Observable<never>;
}
