import type { AsyncSubject, Subject } from 'rxjs';
import type { JoinableDemand } from '../flow/demand.js';
import type { MillraceError } from '../values/errors.js';
import type { AgentEvent, Listener } from '../events.js';
import type { Hook } from './interceptor.js';
import type { Interruption } from '../flow/interruption.js';
import type { Layer, LayerContext } from './layer.js';
import type { Reply } from '../values/reply.js';
import type { Spending } from './spending.js';
import type { Cell } from '../step.js';
import type { Trampoline } from '../flow/trampoline.js';

/** What one call owns, shares with its layers, and hands down to the calls that its tools make. It is made once, and never changes. */
export interface CallContext extends LayerContext {
  /** What happens in the call from now on. Hot; ends with the call, and errors where it does. */
  readonly events$: Subject<AgentEvent>;
  /** How the call ends: with its reply behind the last event, or with its error. */
  readonly reply$: AsyncSubject<Reply>;
  /** Holds the step of the call above whose tool makes this one; call what it returns once. */
  readonly holdAbove: () => () => void;
  readonly demand: JoinableDemand;
  /** Those who hear this call, and all calls below it. */
  readonly listeners: readonly Listener[];
  /** Delivers the events of a whole family of calls, one after the other. */
  readonly deliver: Trampoline;
  /** Runs the turns of a whole family of calls, one after the other: nested ones would overflow the stack. */
  readonly turns: Trampoline;
  /** The number of the last event of a whole family of calls. */
  readonly numbers: { last: number };
  readonly nextSeq: () => number;
  /** The interruption of the call above, where there is one. */
  readonly above: Interruption | undefined;
  /** The call above has been interrupted, and begins no other one. */
  readonly isLate: boolean;
  /** The interceptors of those whose words the call's are: its own, and those of the calls above that it speaks for. */
  readonly voice: readonly Hook[];
  /** Counts a cost in the calls above, if there are any. */
  readonly spend: ((spending: Spending) => void) | undefined;
  readonly layers: readonly Layer[];
  /** What is done once the last event has been heard, or the call was left. */
  readonly afterwards: (() => void)[];
  readonly cells: Map<Cell<unknown>, unknown>;
  /** Tells the tool that makes the call that it was stopped, and all above it with it. */
  readonly reportHalt: (error: MillraceError) => void;
  readonly interceptors: readonly Hook[];
}

export const randomId = (): string => crypto.randomUUID().replaceAll('-', '').slice(0, 16);
