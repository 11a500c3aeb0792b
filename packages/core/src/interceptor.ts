import { type MonoTypeOperatorFunction, type Observable, of } from 'rxjs';
import type { CallInfo } from './call-info.js';
import type { ChunkTransform } from './content-through.js';
import { misuse } from './errors.js';
import {
  type AgentEvent,
  type EventOf,
  isEvent,
  type ModifiableEvent,
  type ModifiableType,
  modifiableTypes,
} from './events.js';
import { isRecord } from './json.js';
import { checkOptions, isFlag, isNumber, isText, type Rule } from './options.js';
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

/** What `on`, `onCall`, `prepare`, `transformChunks` and `watch` make: something that stands in the way of a call, or looks on. */
export type Interceptor = EventInterceptor | PrepareInterceptor | ChunkInterceptor | Watcher;

interface Placed extends InterceptorOptions {
  readonly priority: number;
  readonly failOpen: boolean;
}

/** An operator on one type of event. */
export interface EventInterceptor extends Placed {
  readonly kind: 'event';
  readonly type: ModifiableType;
  /** Readies it for one call. */
  readonly open: (call: CallInfo) => (event: ModifiableEvent) => Observable<AgentEvent>;
}

/** An operator on what a call begins with. */
export interface PrepareInterceptor extends Placed {
  readonly kind: 'prepare';
  readonly operator: MonoTypeOperatorFunction<Preparation>;
}

/** An operator on the chunks of a message. */
export interface ChunkInterceptor extends Placed {
  readonly kind: 'chunks';
  readonly operator: ChunkTransform;
}

/** A handler of every event. */
export interface Watcher extends Placed {
  readonly kind: 'watch';
  readonly handle: (event: AgentEvent, call: CallInfo) => unknown;
}

/**
 * Applies an operator to every event of one type, each on a stream of its own: emit one value to continue, edited or not, none to
 * veto; two, or another type, are an error. The loop waits until it completes.
 */
export const on = <Type extends ModifiableType>(
  type: Type,
  operator: MonoTypeOperatorFunction<EventOf<Type>>,
  options: InterceptorOptions = {},
): EventInterceptor => onCall(type, () => operator, options);

/** As `on`, with an operator built anew for each call: the place for an interceptor's own state. */
export const onCall = <Type extends ModifiableType>(
  type: Type,
  build: (call: CallInfo) => MonoTypeOperatorFunction<EventOf<Type>>,
  options: InterceptorOptions = {},
): EventInterceptor => {
  if (!modifiableTypes.includes(type)) {
    throw misuse(
      `on(): '${type}' is no event that can be intercepted. Those that can: ${modifiableTypes.join(', ')}. Others can be watched on events$, or with watch().`,
    );
  }
  return {
    kind: 'event',
    type,
    ...placed(`on('${type}')`, build, options),
    open: (call) => {
      const operator = build(call);
      return (event) => (isEvent(event, type) ? of(event).pipe(operator) : of(event));
    },
  };
};

/**
 * Applies an operator to the input and the options of a call before it starts: emit one value to continue, none to end the call with
 * reason `stopped`; two are an error. `preCall` shows the original input.
 */
export const prepare = (
  operator: MonoTypeOperatorFunction<Preparation>,
  options: InterceptorOptions = {},
): PrepareInterceptor => ({
  kind: 'prepare',
  operator,
  ...placed('prepare()', operator, options),
});

/**
 * Applies an operator to the content of every message of the model while it streams: it may map, drop, merge or add
 * chunks, and is subscribed to anew for each message. If it completes before the message does, or emits
 * `stopMessage()`, the request is cancelled at once and the call ends with what there is, reason `stopped`; with
 * feedback the message is discarded and the model asked again, twice in a row at most, then the call errors with
 * `guardRejected`. A synchronous operator costs least; one that is slower than the model holds what waits. With `failOpen` the
 * chunks that it had not answered are passed on as they were; text that it had taken apart may be lost.
 * A message that its provider pauses comes in several responses, each transformed by itself.
 */
export const transformChunks = (
  operator: ChunkTransform,
  options: InterceptorOptions = {},
): ChunkInterceptor => ({
  kind: 'chunks',
  operator,
  ...placed('transformChunks()', operator, options),
});

/** Passes every event of the agent's calls to a handler. Its errors are reported by `handlerError` events and harm nothing. */
export const watch = (
  handle: (event: AgentEvent, call: CallInfo) => unknown,
  options: Pick<InterceptorOptions, 'name'> = {},
): Watcher => ({ kind: 'watch', handle, ...placed('watch()', handle, options, { name: isText }) });

/** Tells whether a value is what one of these functions makes. */
export const isInterceptor = (value: unknown): value is Interceptor => {
  if (!isRecord(value)) return false;
  switch (value['kind']) {
    case 'event':
      return typeof value['open'] === 'function';
    case 'prepare':
    case 'chunks':
      return typeof value['operator'] === 'function';
    case 'watch':
      return typeof value['handle'] === 'function';
    default:
      return false;
  }
};

/** Those of one kind in their order, each under a name. */
export const ordered = <Kind extends Interceptor['kind']>(
  interceptors: readonly Interceptor[],
  kind: Kind,
): readonly (Extract<Interceptor, { kind: Kind }> & { readonly name: string })[] =>
  interceptors
    .map((interceptor, index) => ({
      name: `${labelOf(interceptor)} at place ${index + 1}`,
      ...interceptor,
    }))
    .filter(
      (interceptor): interceptor is Extract<typeof interceptor, { kind: Kind }> =>
        interceptor.kind === kind,
    )
    .sort((a, b) => a.priority - b.priority);

const labelOf = (interceptor: Interceptor): string =>
  interceptor.kind === 'event' ? `on('${interceptor.type}')` : labels[interceptor.kind];

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
