import { defer, type MonoTypeOperatorFunction, type Observable, of, take, tap } from 'rxjs';
import { contained, failAs } from '../../flow/contained.js';
import { continueWith } from '../../flow/eventual.js';
import { cancelledIn } from '../../memories/cancel-suspended.js';
import { placed } from '../../memories/conversation.js';
import { recorded } from '../../memories/recorded.js';
import { continuing, suspensionsIn } from '../../memories/suspend.js';
import type { Call } from '../../seams/call.js';
import { isEarlier } from '../../seams/input.js';
import type { Context, Layer } from '../../seams/layer.js';
import { layerPlaces } from '../../seams/layer-places.js';
import { callProgress } from '../../seams/progress.js';
import { trusted } from '../../seams/through.js';
import { MillraceError } from '../../values/errors.js';
import { kept$, type Memory } from '../../values/memory.js';
import { type Message, toolCallsOf } from '../../values/message.js';
import { type MessageTree, pathTo } from '../../values/message-tree.js';

/** The effect of a call on the tool calls that wait at its place: it brings results for them, cancels them, or both. */
export interface Settlement {
  readonly callId: string;
  /** The message that it continues after; `undefined` in a memory without branches. */
  readonly after: string | null | undefined;
  /** The tool calls that it has results for. */
  readonly brought: readonly string[];
}

/** The calls of this process that settle tool calls of one session. */
export interface Settlements {
  /** Throws `conflict` if another call settles the same ones. */
  enter(settlement: Settlement): void;
  leave(callId: string): void;
}

export const createSettlements = (): ((sessionId: string) => Settlements) => {
  const open = new Map<string, ReadonlyMap<string, Settlement>>();
  return (sessionId) => {
    const now = (): ReadonlyMap<string, Settlement> => open.get(sessionId) ?? new Map();
    return {
      enter: (own) => {
        assertFree(own, [...now().values()]);
        open.set(sessionId, new Map(now()).set(own.callId, own));
      },
      leave: (callId) => {
        if (!now().has(callId)) return;
        const others = new Map(now());
        others.delete(callId);
        if (others.size === 0) open.delete(sessionId);
        else open.set(sessionId, others);
      },
    };
  };
};

/**
 * One call settles the tool calls that wait at a place. While it runs, another one that also does errors with `conflict`, unless both
 * only cancel them. After it, their results are refused, on each branch.
 */
export const settlingOnce = ({
  memory,
  settlements,
}: {
  readonly memory: Memory;
  readonly settlements: Settlements;
}): Layer =>
  trusted({
    name: 'settleOnce',
    priority: layerPlaces.conversation + 1,
    call: (context) => (next) => (call) => {
      const own = settlementOf(call, context);
      if (own === undefined) return next(call);
      const { local } = context;
      // A call at the head has just read all that there is.
      const mayBeLate = local(placed).after !== undefined || local(recorded).by !== undefined;
      const tree$ = own.brought.length > 0 && mayBeLate ? treeOf$(memory) : of(undefined);
      return defer(() => {
        settlements.enter(own);
        return tree$;
      }).pipe(
        take(1),
        tap((tree) => {
          if (tree !== undefined) assertWaiting(tree, own, call.late, isOwn(call, context));
        }),
        storingNothing(context),
        continueWith(() => next(call)),
      );
    },
  });

const treeOf$ = (memory: Memory): Observable<MessageTree> =>
  kept$(memory).pipe(contained(), failAs('memory', 'The messages could not be loaded'));

/** A call that is refused leaves nothing in the conversation, not even its question. */
export const storingNothing = <T>({ local }: Pick<Context, 'local'>): MonoTypeOperatorFunction<T> =>
  tap({
    error: () => {
      local(callProgress).onFailure$ = undefined;
    },
  });

export const settlementOf = (
  { after, late, status }: Call,
  { info: { callId }, local }: Pick<Context, 'info' | 'local'>,
): Settlement | undefined => {
  if (status !== 'prepared') return undefined;
  const settled = settlement(callId, after, late);
  const brought = [...settled.brought, ...waitingBefore(late, local(continuing).results.keys())];
  return brought.length > 0 || settled.cancels ? { ...settled, brought } : undefined;
};

export const settlement = (
  callId: string,
  after: Settlement['after'],
  late: readonly Message[],
): Settlement & { readonly cancels: boolean } => {
  const own = late.filter((message) => !isEarlier(message));
  const cancellations = own.filter((message) => cancelledIn(message).length > 0);
  const results = own.filter((message) => !cancellations.includes(message)).flatMap(resultIds);
  const brought = waitingBefore(late, results);
  return { callId, after, brought, cancels: cancellations.length > 0 };
};

/** Leaves out results of tool calls that came with the messages, such as those of a fork. */
const waitingBefore = (
  messages: readonly Message[],
  toolCallIds: Iterable<string>,
): readonly string[] => {
  const ownCalls = messages.flatMap((it) => (it.role === 'assistant' ? toolCallsOf(it) : []));
  return [...toolCallIds].filter((id) => !ownCalls.some((own) => own.id === id));
};

export const resultIds = (message: Message): readonly string[] =>
  message.role === 'tool' ? message.content.map(({ toolCallId }) => toolCallId) : [];

export const assertFree = (own: Settlement, others: readonly Settlement[]): void => {
  const other = others.find(
    ({ callId, after, brought }) =>
      callId !== own.callId && after === own.after && brought.length + own.brought.length > 0,
  );
  if (other !== undefined) throw beingSettled(other.callId);
};

const isOwn =
  ({ late }: Call, { info: { callId }, local }: Context) =>
  (message: Message): boolean =>
    [callId, local(placed).asks].some(
      (own) => own !== undefined && message.id.startsWith(`${own}/`),
    ) || late.some((own) => own.id === message.id && isSameCancellation(own, message));

/** Two calls may cancel different tool calls with messages of one id. */
const isSameCancellation = (one: Message, other: Message): boolean =>
  String(cancelledIn(one)) === String(cancelledIn(other));

/** Throws if another call has settled the tool calls since this one began: it may be resumed long after, and on any branch. */
const assertWaiting = (
  tree: MessageTree,
  { after, brought }: Settlement,
  late: readonly Message[],
  isOwnMessage: (message: Message) => boolean,
): void => {
  // The results of another call come after what it has cancelled, which may be the same.
  const places = [after, ...late.map(({ id }) => id)];
  const settledAfter = tree.entries.filter(
    (entry) => places.includes(entry.after) && !isOwnMessage(entry.message),
  );
  const others = after === undefined ? pathTo(tree).filter((it) => !isOwnMessage(it)) : [];
  const waiting = new Set(suspensionsIn(others).map(({ toolCall }) => toolCall.id));
  const isSettled =
    after === undefined
      ? brought.some((id) => !waiting.has(id))
      : settledAfter.some(({ message }) => message.role === 'tool');
  if (!isSettled) return;
  throw new MillraceError(
    'invalidResume',
    `The tool calls ${brought.map((id) => `'${id}'`).join(', ')} have been answered by another call, or cancelled. That counts, and the conversation has continued.`,
    { status: 409, userMessage: answeredMessage },
  );
};

const answeredMessage = 'This has already been answered. Load the conversation again.';

const beingSettled = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The call '${callId}' has answered the tool calls that wait here, or cancelled them, and has not ended. Do not repeat it: wait for its end. If it was aborted, or its process has stopped, open the session again and call resume().`,
    { status: 409, userMessage: answeredMessage },
  );
