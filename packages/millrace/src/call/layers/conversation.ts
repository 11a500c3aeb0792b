import { andThen, type Eventual, deferWork } from '../../flow/eventual.js';
import { repaired } from '../../seams/repaired.js';
import type { Call } from '../../seams/call.js';
import type { Answer, Layer, Context } from '../../seams/layer.js';
import { perform } from '../../seams/steps.js';
import { trusted } from '../../seams/through.js';
import { MillraceError, misuse } from '../../values/errors.js';
import { noMemory } from '../../values/memory.js';
import type { ToolMessage } from '../../values/message.js';
import type { Reply } from '../../values/reply.js';
import { instructionsOf, resolved } from '../instructions.js';
import type { Observable } from 'rxjs';
import { layerPlaces } from '../../seams/layer-places.js';

/** Opens a call without a history. Layers of the same name replace it. */
export const conversationLayer: Layer = trusted({
  name: 'conversation',
  priority: layerPlaces.conversation,
  single: true,
  call: (context) => (next) => (call) => {
    if (call.memory !== noMemory) throw misuse("A memory needs the layer 'conversation'.");
    const nothing = (willRun: boolean): Conversation => {
      const awaited = willRun ? splitInput(call.input).results?.content[0] : undefined;
      if (awaited !== undefined) throw notAwaited(awaited.toolCallId, []);
      return { history: repaired(call.history, context), late: call.late };
    };
    return loadConversation$(call, context, nothing, next);
  },
});

/** The initial state of a call. */
export interface Opening extends Conversation, Pick<Call, 'instructions' | 'createdAt'> {
  /** A layer cut the step: the history is unknown, so the call must not run. */
  readonly isCut?: true;
}

/** The earlier conversation, and the part that memory does not have yet. */
export type Conversation = Pick<Call, 'after' | 'history' | 'late'>;

/** Opens a call: sets its history, instructions and start. A vetoed or interrupted call takes no results. */
export const loadConversation$ = (
  call: Call,
  context: Pick<Context, 'info' | 'interruption' | 'local' | 'scheduler'>,
  load: (willRun: boolean) => Eventual<Conversation>,
  next: Answer,
): Observable<Reply> =>
  deferWork(() => {
    const { info, interruption, local, scheduler } = context;
    const willRun = call.status === 'prepared' && interruption.current === undefined;
    const { own } = local(instructionsOf);
    const openedBy = (loaded: Eventual<Conversation>, isCut = false): Eventual<Opening> => {
      const base = { instructions: resolved(own, info), createdAt: scheduler.now() };
      return andThen(loaded, (it) => ({ ...base, ...it, ...(isCut && { isCut }) }));
    };
    const opened = perform<Opening>(context, {
      kind: 'open',
      id: 'open',
      input: call,
      work: () => openedBy(load(willRun)),
      cut: () => openedBy({ history: [], late: call.late }, true),
    });
    return andThen(opened, ({ isCut = false, ...opening }) => {
      const isOver = isCut || interruption.current !== undefined;
      const status = call.status === 'prepared' && isOver ? 'interrupted' : call.status;
      return next({ ...call, ...opening, input: splitInput(call.input).input, status });
    });
  });

/** Results for earlier tool calls come first, in their own message. */
export const splitInput = (
  messages: Call['input'],
): { readonly results: ToolMessage | undefined; readonly input: Call['input'] } => {
  const [first, ...others] = messages;
  return first?.role === 'tool'
    ? { results: first, input: others }
    : { results: undefined, input: messages };
};

export const notAwaited = (id: string, waiting: readonly string[]): MillraceError =>
  new MillraceError(
    'invalidResume',
    `No tool call '${id}' waits for a result. Tool calls that do: ${waiting.join(', ') || 'none'}.`,
  );
