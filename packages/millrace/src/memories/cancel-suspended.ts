import type { Context } from '../seams/layer.js';
import { cell } from '../step.js';
import { messageOf } from '../values/errors.js';
import { type Message, type Suspension, textBlock, type ToolMessage } from '../values/message.js';
import { suspendedIn, withResults } from './suspend.js';
import { suspensionsOf } from '../phases/settle.js';

/** A new message for a session whose tools wait for results: `cancel` gives them an error result, `refuse` errors. */
export type OnSuspended = 'cancel' | 'refuse';

export const goneOn = 'Cancelled before it had a result: the user wrote something else instead.';

/** The result of a tool call that was running when its process ended. */
export const endUnknown =
  'It is unknown whether this has run: the process ended before its result was recorded. Find out before you call it again.';

/** The layer `journal`, which suspends tool calls that were running when their process ended. */
export const byJournal = 'journal';

/** Whether a suspended tool call was running when its process ended: its journal has suspended it, not its tool. */
export const isUncertain = ({ by }: Pick<Suspension, 'by'>): boolean => by === byJournal;

/**
 * Error results for the tool calls that wait, except those whose results are all brought: a tool call whose sub-agents wait is
 * cancelled as a whole. The id names only the cancelled tool calls, so that doing it twice, even in two processes, adds one message.
 */
export const cancellationOf = (
  messages: readonly Message[],
  /** The id of the last message, if it is stored with another one than the last of these. */
  after: string | null | undefined,
  reason: string,
  brought: ReadonlySet<string> = new Set(),
): ToolMessage | undefined => {
  const content = suspendedIn(withResults(messages)).flatMap((tool) => {
    const suspensions = suspensionsOf(tool);
    const cancelled = suspensions.map(({ toolCall }) => toolCall.id);
    if (cancelled.every((id) => brought.has(id))) return [];
    return {
      type: 'tool_result' as const,
      toolCallId: tool.toolCall.id,
      // A tool that may have had its effect must not be said to be cancelled: the model would call it again.
      content: [textBlock(suspensions.some(isUncertain) ? endUnknown : reason)],
      isError: true,
      cancelled,
    };
  });
  if (content.length === 0) return undefined;
  return { id: `${after ?? messages.at(-1)?.id ?? ''}/cancelled`, role: 'tool', content };
};

/**
 * Functions that are called with each suspended tool call that a message of the call cancels, after the interceptors. A layer adds
 * one if something else than the session waits, such as a task of a server. Its priority is below 60, that of the layer which loads the conversation.
 */
export const onSuspensionCancelled = cell(
  'call',
  () => new Set<(suspension: Suspension) => void>(),
);

/** Calls those functions. One that throws is a warning: the tool calls are cancelled all the same. */
export const reportCancelled = (
  suspensions: readonly Suspension[],
  { hooks, local }: Pick<Context, 'hooks' | 'local'>,
): void => {
  for (const act of local(onSuspensionCancelled)) {
    for (const suspension of suspensions) {
      try {
        act(suspension);
      } catch (cause) {
        const { name } = suspension.toolCall;
        const message = `A function of 'onSuspensionCancelled' failed for the tool call '${name}': ${messageOf(cause)}`;
        hooks.report(hooks.iteration(), { type: 'warning', message });
      }
    }
  }
};

export const isCancellation = (message: Message): boolean => cancelledIn(message).length > 0;

/** The ids of suspended tool calls, as `toolResults` takes them, that a message cancels. */
export const cancelledIn = (message: Message): readonly string[] =>
  message.role === 'tool' ? message.content.flatMap(({ cancelled = [] }) => cancelled) : [];
