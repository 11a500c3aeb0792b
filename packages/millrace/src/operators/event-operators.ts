import {
  defer,
  distinctUntilChanged,
  filter,
  groupBy,
  type GroupedObservable,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  type OperatorFunction,
  pipe,
  scan,
  skip,
  startWith,
} from 'rxjs';
import { type AgentEvent, type EventType, isEvent, type TypedEventOf } from '../events.js';
import { textOf } from '../values/message.js';
import { checkOptions, isFlag } from '../values/options.js';
import type { TypedRun, Reply, AnyRun } from '../values/reply.js';
import type { Tool } from '../tools/types.js';
import { toToolRun } from '../values/tool-output.js';
import { addUsage, noUsage, type Usage } from '../values/usage.js';
import { isAnswerDelta } from './bounded.js';

/**
 * Emits each tool call on its result, including refused and failed ones. The output is complete; the model and
 * `reply.toolCalls` get up to `maxObservation` characters. With a tool in `of`, emits its calls only, typed by its
 * schema. Completes with the events.
 */
export const toolRuns = <Run extends AnyRun = AnyRun>({
  of: chosenTool,
  ...options
}: CallsHeard & { readonly of?: Tool<unknown, Run> } = {}): OperatorFunction<
  AgentEvent,
  TypedRun<Run>
> =>
  pipe(
    heard('toolRuns()', options),
    only('postActing'),
    filter(({ toolCall }) => chosenTool === undefined || toolCall.name === chosenTool.name),
    // The name of a tool says what its input is; no type guard can express that.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    map((event) => toToolRun(event) as TypedRun<Run>),
  );

/**
 * Emits the text of the answer as it arrives, also of the closing request, and that of sub-agents that speak for the agent; no thinking, no tool arguments. An answer that was not streamed, or that an interceptor edited, is emitted as a whole
 * with `postCall`. It cannot take back a message that is discarded; `textSoFar()` can. For one call at a time: group several with `byCall()` first. Completes with the events.
 */
export const text = (options?: CallsHeard): OperatorFunction<AgentEvent, string> =>
  pipe(
    spoken('text()', options),
    (event$) =>
      defer(() => {
        const roots = new Map<string, Map<string, string>>();
        return event$.pipe(map((event) => newText(event, roots)));
      }),
    filter((delta) => delta !== ''),
  );

/** The text that an event adds to the emitted text of its family of calls. */
const newText = (event: AgentEvent, roots: Map<string, Map<string, string>>): string => {
  const { rootId } = event;
  if (isAnswerDelta(event)) {
    if (event.kind !== 'text') return '';
    const shown = roots.get(rootId) ?? new Map<string, string>();
    roots.set(rootId, shown.set(event.messageId, (shown.get(event.messageId) ?? '') + event.delta));
    return event.delta;
  }
  if (event.type === 'error' && event.parentId === undefined) roots.delete(rootId);
  if (event.type !== 'postCall' || event.speaks === true) return '';
  const before = roots.get(rootId)?.get(event.reply.id) ?? '';
  if (event.parentId === undefined) roots.delete(rootId);
  const whole = textOf(event.reply);
  // A message that was joined in the middle: its end is known.
  if (before !== '' && whole.endsWith(before)) return '';
  return whole.startsWith(before) ? whole.slice(before.length) : whole;
};

/**
 * Emits the text of the answer so far. It starts over with each message, and is empty after a discarded one; the last value is the text of the reply. For one call at a time: group several with `byCall()`. Put `sampleDeltas()` before it to emit less often. Completes with the events.
 */
export const textSoFar = (): OperatorFunction<AgentEvent, string> =>
  pipe(
    spoken('textSoFar()'),
    scan(
      ({ id, soFar }, event) => {
        if (isAnswerDelta(event) && event.kind === 'text') {
          const { messageId, delta } = event;
          return { id: messageId, soFar: messageId === id ? soFar + delta : delta };
        }
        if (event.type === 'messageDiscarded' && event.messageId === id) return { id, soFar: '' };
        if (event.type === 'postCall' && event.parentId === undefined) {
          return { id: event.reply.id, soFar: textOf(event.reply) };
        }
        return { id, soFar };
      },
      { id: '', soFar: '' },
    ),
    map(({ soFar }) => soFar),
    startWith(''),
    distinctUntilChanged(),
    skip(1),
  );

/** Emits the reply of each call that did not fail. Completes with the events. */
export const replies = (options?: CallsHeard): OperatorFunction<AgentEvent, Reply> =>
  pipe(
    heard('replies()', options),
    only('postCall'),
    map(({ reply }) => reply),
  );

/**
 * Groups events by `callId`: emits an Observable for each call on its first event; that completes after `postCall` or `error`, so nothing is kept for calls that have ended. Give it all events of a call; a call that was joined late begins in its middle. A sub-agent's call is a group of its own. The groups are hot: subscribe immediately.
 */
export const byCall = (): OperatorFunction<AgentEvent, GroupedObservable<string, AgentEvent>> =>
  groupBy(({ callId }) => callId, {
    duration: (call$) => call$.pipe(filter((event) => isEvent(event, 'postCall', 'error'))),
  });

/**
 * Filters events by type, with the type narrowed.
 *
 * @example
 * ```ts
 * const results$ = agent.stream$('What is the weather in Oslo?').pipe(only('postActing'));
 * results$.subscribe(({ toolCall, result }) => console.log(toolCall.name, textOf(result)));
 * ```
 */
export const only =
  <Type extends EventType>(...types: readonly Type[]) =>
  <Run extends AnyRun>(event$: Observable<AgentEvent<Run>>): Observable<TypedEventOf<Type, Run>> =>
    event$.pipe(filter((event): event is never => isEvent(event, ...types)));

export interface CallsHeard {
  /** Whether to include sub-agents at any depth. Default: false. */
  readonly subAgents?: boolean;
}

/** Filters events of root calls, optionally including sub-agents. */
export const heard = (owner: string, options?: CallsHeard): MonoTypeOperatorFunction<AgentEvent> =>
  chosen(owner, options, ({ parentId }) => parentId === undefined);

/** Filters events of root calls, of sub-agents that speak for them, and optionally of the others. */
const spoken = (owner: string, options?: CallsHeard): MonoTypeOperatorFunction<AgentEvent> =>
  chosen(owner, options, isSpoken);

export const isSpoken = ({ parentId, speaks }: AgentEvent): boolean =>
  parentId === undefined || speaks === true;

const chosen = (
  owner: string,
  options: CallsHeard = {},
  isOwn: (event: AgentEvent) => boolean,
): MonoTypeOperatorFunction<AgentEvent> => {
  checkOptions(owner, options, { subAgents: isFlag });
  const { subAgents = false } = options;
  return filter((event) => subAgents || isOwn(event));
};

/**
 * Emits the running total of the usage of all calls, sub-agents included, whenever it grows: `events$.pipe(usage$)`. A request counts once, when its message is complete; one that was cut counts with its call's reply, and not at all if the call fails. Each
 * subscription counts from zero; in the middle of a call, it counts what that call has cost with its reply. Completes with the events.
 */
export const usage$ = (event$: Observable<AgentEvent>): Observable<Usage> =>
  defer(() => {
    const calls: Calls = new Map();
    return event$.pipe(
      map((event) => growth(event, calls)),
      filter(isSome),
      scan(addUsage, noUsage),
    );
  });

type Calls = Map<string, { readonly parentId: string | undefined; counted: Usage }>;

const growth = (event: AgentEvent, calls: Calls): Usage => {
  const { callId, parentId } = event;
  const call = calls.get(callId) ?? { parentId, counted: noUsage };
  calls.set(callId, call);
  switch (event.type) {
    case 'postReasoning':
    case 'postSummary':
    case 'postPlanning':
      count(event, event.usage, calls);
      return event.usage;
    case 'postCall': {
      const more = beyond(event.reply.usage, call.counted);
      count(event, more, calls);
      calls.delete(callId);
      return more;
    }
    case 'error':
      calls.delete(callId);
      return noUsage;
    default:
      return noUsage;
  }
};

const count = (
  { callId, rootId }: Pick<AgentEvent, 'callId' | 'rootId'>,
  usage: Usage,
  calls: Calls,
): void => {
  const call = calls.get(callId);
  if (call !== undefined) call.counted = addUsage(call.counted, usage);
  if (callId === rootId) return;
  // Of a parent without events so far, only the root is known.
  const above = call?.parentId ?? rootId;
  count({ callId: above, rootId }, usage, calls);
};

const beyond = (all: Usage, known: Usage): Usage => ({
  inputTokens: Math.max(0, all.inputTokens - known.inputTokens),
  outputTokens: Math.max(0, all.outputTokens - known.outputTokens),
  cacheReadTokens: Math.max(0, all.cacheReadTokens - known.cacheReadTokens),
  cacheWriteTokens: Math.max(0, all.cacheWriteTokens - known.cacheWriteTokens),
});

const isSome = (usage: Usage): boolean => Object.values(usage).some((tokens) => tokens > 0);
