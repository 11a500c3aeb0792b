import { type MonoTypeOperatorFunction, type Observable, of } from 'rxjs';
import type { CallInfo } from '../values/reply.js';
import type { ChunkTransform } from '../models/chunk-transform.js';
import { misuse } from '../values/errors.js';
import type { AgentEvent, EventOf, ModifiableEvent, ModifiableType } from '../events.js';
import { isEvent, modifiableTypes } from '../events.js';
import { isRecord } from '../values/json.js';
import { checkOptions, isFlag, isNumber, isText, type Rule } from '../values/options.js';
import type { Preparation } from './preparation.js';

/** How an interceptor is placed, and what its failure means. */
export interface InterceptorOptions {
  /** What events and errors call it. Default: its kind and place. */
  readonly name?: string;
  /** The lower goes first; equals go in the order they were given. Default: 100. */
  readonly priority?: number;
  /** An error is passed over with a `handlerError` event, instead of failing the call. Default: false. */
  readonly failOpen?: boolean;
}

/** A layer that intercepts or watches the events of a call: what `on`, `onCall`, `prepare`, `transformChunks` and `watch` return, for `use`. */
export interface Interceptor {
  readonly name: string;
  readonly hook: Hook;
}

/** What an interceptor does, by its kind. */
export type Hook = EventHook | PrepareHook | ChunkHook | WatchHook;

interface Placed extends InterceptorOptions {
  readonly priority: number;
  readonly failOpen: boolean;
}

/** An operator on one type of event. */
export interface EventHook extends Placed {
  readonly kind: 'event';
  readonly type: ModifiableType;
  /** Readies it for one call. */
  readonly open: (call: CallInfo) => (event: ModifiableEvent) => Observable<AgentEvent>;
}

interface PrepareHook extends Placed {
  readonly kind: 'prepare';
  readonly operator: MonoTypeOperatorFunction<Preparation>;
}

interface ChunkHook extends Placed {
  readonly kind: 'chunks';
  readonly operator: ChunkTransform;
}

interface WatchHook extends Placed {
  readonly kind: 'watch';
  readonly handle: (event: AgentEvent, call: CallInfo) => unknown;
}

/** Applies an operator to every event of one type, each on a stream of its own: emit one value to continue, edited or not, none to veto; two, or another type, are an error. The loop waits until it completes. */
export const on = <Type extends ModifiableType>(
  type: Type,
  operator: MonoTypeOperatorFunction<EventOf<Type>>,
  options: InterceptorOptions = {},
): Interceptor => onCall(type, () => operator, options);

/** As `on`, with an operator built anew for each call: the place for an interceptor's own state. */
export const onCall = <Type extends ModifiableType>(
  type: Type,
  build: (call: CallInfo) => MonoTypeOperatorFunction<EventOf<Type>>,
  options: InterceptorOptions = {},
): Interceptor => {
  if (!modifiableTypes.includes(type)) {
    throw misuse(
      `on(): '${type}' cannot be intercepted, only watched. Those that can: ${modifiableTypes.join(', ')}.`,
    );
  }
  return interceptor({
    kind: 'event',
    type,
    ...placed(`on('${type}')`, build, options),
    open: (call) => {
      const operator = build(call);
      return (event) => (isEvent(event, type) ? of(event).pipe(operator) : of(event));
    },
  });
};

/** Applies an operator to the input and the options of a call before it starts: emit one value to continue, none to end the call with reason `stopped`; two are an error. `preCall` shows the original input. */
export const prepare = (
  operator: MonoTypeOperatorFunction<Preparation>,
  options: InterceptorOptions = {},
): Interceptor =>
  interceptor({ kind: 'prepare', operator, ...placed('prepare()', operator, options) });

/**
 * Applies an operator to the content of every message of the model while it streams: it may map, drop, merge or add chunks, and is subscribed to for each message. If it completes early, or emits `stopMessage()`, the request is cancelled and the call ends with the text so far, reason `stopped`; with feedback, the message
 * is discarded and the model asked again, up to twice in a row, then the call errors with `guardRejected`. With `failOpen`, chunks that a failed operator has not passed on are passed on unchanged; text that it had split may be lost. If a provider pauses a message, each of its responses is transformed by itself.
 */
export const transformChunks = (
  operator: ChunkTransform,
  options: InterceptorOptions = {},
): Interceptor =>
  interceptor({ kind: 'chunks', operator, ...placed('transformChunks()', operator, options) });

/** Passes every event of the agent's calls to a handler. Its errors are reported by `handlerError` events and harm nothing. */
export const watch = (
  handle: (event: AgentEvent, call: CallInfo) => unknown,
  options: Pick<InterceptorOptions, 'name'> = {},
): Interceptor =>
  interceptor({
    kind: 'watch',
    handle,
    ...placed('watch()', handle, options, { name: isText }),
  });

const interceptor = (hook: Hook): Interceptor => ({ name: hook.name ?? labelOf(hook), hook });

export const isInterceptor = (value: unknown): value is Interceptor =>
  isRecord(value) && isRecord(value['hook']) && typeof value['hook']['kind'] === 'string';

export const ordered = <Kind extends Hook['kind']>(
  hooks: readonly Hook[],
  kind: Kind,
): readonly (Extract<Hook, { kind: Kind }> & { readonly name: string })[] =>
  hooks
    .map((hook, index) => ({ name: `${labelOf(hook)} at place ${index + 1}`, ...hook }))
    .filter((hook): hook is Extract<typeof hook, { kind: Kind }> => hook.kind === kind)
    .sort((a, b) => a.priority - b.priority);

const labelOf = (hook: Hook): string =>
  hook.kind === 'event' ? `on('${hook.type}')` : labels[hook.kind];

const labels = { prepare: 'prepare()', chunks: 'transformChunks()', watch: 'watch()' } as const;

const placed = (
  owner: string,
  work: unknown,
  options: InterceptorOptions,
  allowed: Readonly<Record<string, Rule>> = rules,
): Placed => {
  if (typeof work !== 'function') throw misuse(`${owner} takes a function, not ${typeof work}.`);
  checkOptions(owner, options, allowed);
  const { name, priority = 100, failOpen = false } = options;
  return { priority, failOpen, ...(name === undefined ? {} : { name }) };
};

const rules: Readonly<Record<keyof InterceptorOptions, Rule>> = {
  name: isText,
  priority: isNumber,
  failOpen: isFlag,
};
