import type { AsyncSubject, Subject } from 'rxjs';
import type { JoinableDemand } from '../flow/demand.js';
import type { AgentEvent, Listener } from '../events.js';
import type { Hook } from './interceptor.js';
import type { LayerContext } from './layer.js';
import type { Reply } from '../values/reply.js';
import type { Below } from './spending.js';
import type { Cell } from '../step.js';
import type { Trampoline } from '../flow/trampoline.js';

/** The state of one call, for its layers and for calls of its tools. Created once, never replaced. */
export interface CallContext extends LayerContext {
  /** Events of the call from now on. Hot; completes or errors with the call. */
  readonly events$: Subject<AgentEvent>;
  /** Emits the reply after the last event, or errors. */
  readonly reply$: AsyncSubject<Reply>;
  readonly demand: JoinableDemand;
  /** Receivers of the events of this call and its sub-agents. */
  readonly listeners: readonly Listener[];
  /** Delivers the events of the family of calls, one at a time. */
  readonly deliver: Trampoline;
  readonly above: ToolScope | undefined;
  /** The interceptors of the call, and of the parents that it speaks for. */
  readonly voice: readonly Hook[];
  /** Runs after the last event was delivered, or on unsubscribe. */
  readonly afterwards: (() => void)[];
  readonly cells: Map<Cell<unknown>, unknown>;
}

/** The part of a tool call that its calls need. */
export interface ToolScope {
  readonly scope: CallContext;
  readonly stepId: string;
  readonly isOver: () => boolean;
  readonly below: Below;
  readonly callIds: CallIds;
  readonly speaks: boolean;
}

interface CallIds {
  readonly prefix: string;
  count: number;
}

export const randomId = (): string => crypto.randomUUID().replaceAll('-', '').slice(0, 16);

/** Adds an accessor that all objects share: one of its own would give each object a shape of its own, which is slow. */
export const sharing = <T extends object, Key extends string, Value>(
  own: T,
  key: Key,
  get: (this: T) => Value,
): T & Readonly<Record<Key, Value>> =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- TypeScript ignores definitions.
  Object.defineProperty(own, key, { enumerable: true, configurable: true, get }) as T &
    Readonly<Record<Key, Value>>;
