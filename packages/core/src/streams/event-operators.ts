import { filter, groupBy, type GroupedObservable, map, type OperatorFunction, pipe } from 'rxjs';
import { type AgentEvent, type EventOf, type EventType, isEvent } from '../events.js';
import { textOf } from '../message.js';
import type { Reply, ToolRun } from '../reply.js';
import { type CallsHeard, heard, spoken } from './heard.js';
import { isAnswerDelta } from './merge-deltas.js';

/**
 * Emits each run of a tool when its result is there, also one that was refused or failed. Its output is whole: what the
 * model and `reply.toolUses` get is cut to `maxObservation`. Ends as the events do.
 */
export const toolRuns = (options?: CallsHeard): OperatorFunction<AgentEvent, ToolRun> =>
  pipe(
    heard('toolRuns()', options),
    only('postActing'),
    map(({ toolUse: { id, name, input }, result, ms }) => ({
      toolUseId: id,
      name,
      input,
      output: textOf(result),
      isError: result.isError,
      ms,
    })),
  );

/**
 * Emits the deltas of the answer's text as they come, of the closing request too: no thinking and no arguments of
 * tools. What a call below says for the root (`speaks`) is a part of the answer. Strings do not say whose they are: of several calls at once, group them with `byCall()` before. Nor can they
 * be unsaid: a message that is discarded leaves its text here, so a user interface also listens to
 * `messageDiscarded`. Ends as the events do.
 */
export const text = (options?: CallsHeard): OperatorFunction<AgentEvent, string> =>
  pipe(
    spoken('text()', options),
    filter(isAnswerDelta),
    filter(({ kind }) => kind === 'text'),
    map(({ delta }) => delta),
  );

/** Emits the reply of each call when it has ended; a call that fails has none. Ends as the events do. */
export const replies = (options?: CallsHeard): OperatorFunction<AgentEvent, Reply> =>
  pipe(
    heard('replies()', options),
    only('postCall'),
    map(({ reply }) => reply),
  );

/**
 * Groups events by `callId`: emits one Observable a call, when its first event is heard, which completes behind
 * its last one (`postCall` or `error`). So nothing is kept for calls that are over; give it all events of a call, or
 * it cannot know. A sub-agent's call is a call of its own, and a call that was joined late begins in its middle. The
 * groups are hot: subscribe to each when it comes.
 */
export const byCall = (): OperatorFunction<AgentEvent, GroupedObservable<string, AgentEvent>> =>
  groupBy(({ callId }) => callId, {
    duration: (call$) => call$.pipe(filter((event) => isEvent(event, 'postCall', 'error'))),
  });

/** Lets the events of these types through, typed as such. */
export const only = <Type extends EventType>(
  ...types: readonly Type[]
): OperatorFunction<AgentEvent, EventOf<Type>> =>
  filter((event): event is EventOf<Type> => isEvent(event, ...types));
