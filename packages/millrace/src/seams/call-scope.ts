import type { Listener } from '../events.js';
import type { Trampoline } from '../flow/trampoline.js';
import { type Cell, cell } from '../step.js';
import type { ContextValues } from '../tools/context-key.js';
import type { CallInfo, CallLabels } from '../values/reply.js';
import type { Hook } from './interceptor.js';
import type { Context } from './layer.js';
import type { Below } from './spending.js';

/** The part of a call that the calls below it need. */
export interface CallScope {
  readonly context: Context;
  readonly labels: CallLabels;
  /** The tool call that makes the call. */
  readonly parentTool: ToolScope | undefined;
  /** The calls that may wait for this one: its lineage, and calls whose tools started it without being its parent. */
  readonly waiters: readonly CallInfo[];
  /** Receivers of the events of the call and its sub-agents. */
  readonly listeners: readonly Listener[];
  /** The interceptors of the call, and of the parents that it speaks for. */
  readonly speakerInterceptors: readonly Hook[];
  /** Delivers the events of the family of calls, one at a time. */
  readonly deliver: Trampoline;
  readonly familyCells: Map<Cell<unknown>, unknown>;
}

/** The part of a tool call that its calls need. */
export interface ToolScope {
  /** The call of the tool. */
  readonly scope: CallScope;
  readonly values: ContextValues;
  readonly stepId: string;
  readonly isOver: () => boolean;
  /** The reports of the calls that it makes. */
  readonly below: Below;
  readonly callIds: CallIds;
  readonly speaks: boolean;
}

interface CallIds {
  readonly prefix: string;
  count: number;
}

const scopes = cell('call', (): { own?: CallScope } => ({}));

export const setScope = (scope: CallScope): void => {
  scope.context.local(scopes).own = scope;
};

export const scopeOf = ({ local }: Pick<Context, 'local'>): CallScope => {
  const { own } = local(scopes);
  if (own === undefined) throw new Error('A context without its call.');
  return own;
};

/** The tool call that makes the call, if one does. */
export const parentToolOf = (context: Pick<Context, 'local'>): ToolScope | undefined =>
  scopeOf(context).parentTool;

/** The ancestors of a call, outermost first, and itself. */
export const lineageOf = (call: CallInfo): readonly CallInfo[] =>
  call.parent === undefined ? [call] : [...lineageOf(call.parent), call];

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
