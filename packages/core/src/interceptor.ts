import { type MonoTypeOperatorFunction, type Observable, of } from 'rxjs';
import type { CallInfo } from './call-info.js';
import { misuse } from './errors.js';
import {
  type AgentEvent,
  type EventOf,
  isEvent,
  type ModifiableEvent,
  type ModifiableType,
  modifiableTypes,
} from './events.js';
import { checkOptions, isFlag, isNumber, isText, type Rule } from './options.js';

/** How an interceptor is placed, and what its failure means. */
export interface InterceptorOptions {
  /** What events and errors call it. Default: its type and place. */
  readonly name?: string;
  /** The lower goes first; equals go in the order they were given. Default: 100. */
  readonly priority?: number;
  /** An error is passed over with a `handlerError` event, instead of failing the call. Default: false. */
  readonly failOpen?: boolean;
}

/** An operator on one type of event. `on` and `onCall` make one. */
export interface Interceptor extends InterceptorOptions {
  readonly type: ModifiableType;
  readonly priority: number;
  readonly failOpen: boolean;
  /** Readies it for one call. */
  open(call: CallInfo): (event: ModifiableEvent) => Observable<AgentEvent>;
}

/**
 * Applies an operator to every event of one type, each alone, on a stream of one: the value it emits is
 * gone on with, edited or not; none at all is a veto; two, or one of another type, are an error. The
 * loop waits until it completes.
 */
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
      `on(): '${type}' is no event that can be intercepted. Those that can: ${modifiableTypes.join(', ')}. Others can be watched on events$.`,
    );
  }
  checkOptions(`on('${type}')`, options, rules);
  const { name, priority = 100, failOpen = false } = options;
  return {
    type,
    priority,
    failOpen,
    ...(name === undefined ? {} : { name }),
    open: (call) => {
      const operator = build(call);
      return (event) => (isEvent(event, type) ? of(event).pipe(operator) : of(event));
    },
  };
};

const rules: Readonly<Record<keyof InterceptorOptions, Rule>> = {
  name: isText,
  priority: isNumber,
  failOpen: isFlag,
};
