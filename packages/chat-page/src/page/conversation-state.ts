import { fieldsOf } from './fields.js';
import { withChunk, withFacts, withStart } from './message-chunks.js';
import { Refusal } from './responses.js';
import type { Branches, Facts, History } from './server.js';
import {
  approvalsIn,
  isOver,
  isQuestion,
  lacksReason,
  lacksWord,
  plainTextOf,
  type SettledAs,
  type ToolOutcome,
  toolsIn,
  type UiMessage,
  type UiPart,
  uncertainIn,
  waitingIn,
} from './ui-message.js';
import { hasArrived, type Unsent } from './unsent.js';

/** A conversation, as the page shows it. */
export interface Conversation {
  readonly id: string;
  /** `loading` until the history is known; `answering` from a question to the end of its answer. */
  readonly status: 'loading' | 'ready' | 'answering';
  /** The connection was lost, and is tried again. */
  readonly isReconnecting: boolean;
  readonly title?: string | undefined;
  /** One branch of the conversation, from its first message to its last. */
  readonly messages: readonly UiMessage[];
  /** The other versions of messages. */
  readonly branches: Branches;
  /** The server's last message of this branch. */
  readonly head?: string | undefined;
  /** The call whose answer runs on the server. */
  readonly running?: string | undefined;
  /** Messages that the server is not known to have: they come after all others. */
  readonly unsent: readonly Unsent[];
  /** The request whose answer has not begun. */
  readonly sending?: Sending | undefined;
  /** Messages for the running answer that it has not taken yet. */
  readonly steering: readonly string[];
  /** The question that the user edits: it stays until the edit ends. */
  readonly editing?: string | undefined;
  /** A change in another tab: the page shows another branch after the edit, or the conversation is gone. */
  readonly elsewhere?: 'changed' | 'deleted' | undefined;
  /** The number of changes that the server has reported. */
  readonly changes: number;
  /** Why the last request has failed, and the command that tries it again. */
  readonly problem?: { readonly text: string; readonly retry?: Command };
}

/** The conversation once the answer to a request begins: these messages, and the unsent one with this id. */
interface Sending {
  readonly messages: readonly UiMessage[];
  readonly id?: string;
}

/** An action of the user. */
export type Command =
  | { readonly type: 'ask'; readonly parts: readonly UiPart[] }
  /** Generates an answer again, in a branch of its own. */
  | { readonly type: 'regenerate'; readonly messageId: string }
  /** Asks another question instead, in a branch of its own. */
  | { readonly type: 'edit'; readonly messageId: string; readonly parts: readonly UiPart[] }
  /** Shows another version of a message, and continues there. */
  | { readonly type: 'switch'; readonly messageId: string }
  /** Begins the edit of a question, or ends it. */
  | { readonly type: 'editing'; readonly messageId: string | undefined }
  /** Sends an unsent message, unless the server has it. */
  | { readonly type: 'retry'; readonly messageId: string }
  /** Removes an unsent message. */
  | { readonly type: 'discard'; readonly messageId: string }
  | ToolOutcome
  /** Reports the outcome of an uncertain tool call. */
  | { readonly type: 'settle'; readonly toolCallId: string; readonly outcome: SettledAs }
  /** Takes an answer or an outcome back that waits for the others. */
  | { readonly type: 'change'; readonly toolCallId: string }
  | { readonly type: 'load' }
  | { readonly type: 'stop' }
  | { readonly type: 'steer'; readonly text: string };

export type Update = (state: Conversation) => Conversation;

export const begun = (id: string, unsent: readonly Unsent[]): Conversation => ({
  ...{ id, status: 'loading', isReconnecting: false, messages: [], branches: {} },
  ...{ unsent, steering: [], changes: 0 },
});

export const set =
  (change: Partial<Conversation>): Update =>
  (state) => ({ ...state, ...change });

/** Nothing is on its way. */
export const settled = { isReconnecting: false, sending: undefined } as const;

/** The state with the history. A question that is being edited stays: then, the history comes after the edit. */
export const loaded =
  (history: History): Update =>
  (state) => {
    const { editing } = state;
    if (editing !== undefined && !history.messages.some(({ id }) => id === editing)) {
      return { ...state, ...settled, status: 'ready', elsewhere: 'changed' };
    }
    const { head, running, branches } = history;
    const messages = merged(state.messages, history);
    return cleared({
      ...{ head, running, branches, messages, ...settled, elsewhere: undefined },
      status: running === undefined ? 'ready' : 'answering',
      unsent: state.unsent.filter((message) => !hasArrived(message, messages)),
    })(state);
  };

/**
 * A key for each answer whose end this tab does not know, whose suspended tool calls it cannot show, or which lacks the user's word that
 * another tab has sent or the reason of a denial, and for each question without an answer. Empty while one runs.
 */
export const unknownIn = ({ messages, status }: Conversation): readonly string[] =>
  status === 'ready'
    ? messages.flatMap((message, at) => {
        if (!isKnown(message) || isUnanswered(message, at, messages)) {
          // A result that has come since, such as the user's word, has facts of its own.
          return [`${message.id} ${toolsIn(message).filter(isOver).length}`];
        }
        return lacksWord(message)
          ? [`${message.id} settled`]
          : lacksReason(message)
            ? [`${message.id} denied`]
            : [];
      })
    : [];

const isKnown = (message: UiMessage): boolean =>
  isQuestion(message) ||
  (message.end !== undefined &&
    (message.end.reason !== 'suspended' ||
      waitingIn(message).length + uncertainIn(message).length > 0));

/** The command that sends what the user has given while the answer ran; undefined if there is nothing, or another one waits for the user. */
export const heldIn = ({
  messages,
  status,
}: Conversation): Extract<Command, { readonly toolCallId: string }> | undefined => {
  const last = messages.at(-1);
  if (status !== 'ready' || last === undefined) return undefined;
  const waiting = waitingIn(last);
  const [given] = waiting.map((it) => it.given);
  if (given !== undefined && waiting.every((it) => it.given !== undefined)) return given;
  const uncertain = uncertainIn(last);
  const [first] = uncertain;
  return first?.outcome !== undefined &&
    uncertain.every(({ outcome, isSent }) => outcome !== undefined && isSent !== true)
    ? { type: 'settle', toolCallId: first.toolCallId, outcome: first.outcome }
    : undefined;
};

/** The state with the facts of answers that this tab has not seen. */
export const restored =
  (facts: Facts): Update =>
  (state) => ({
    ...state,
    messages: state.messages.flatMap((message, at) => {
      const { id } = isQuestion(message) ? answerTo(message) : message;
      const chunks = facts[id];
      if (chunks === undefined) return [message];
      if (!isUnanswered(message, at, state.messages)) {
        return [isKnown(message) ? withWords(message, chunks) : withFacts(message, chunks)];
      }
      const answer = withFacts(answerTo(message), chunks);
      return answer.end?.error === undefined ? [message] : [message, answer];
    }),
  });

/** An answer that this tab has seen, with the user's words of another tab, and the reasons of denials. */
const withWords = (message: UiMessage, chunks: readonly unknown[]): UiMessage =>
  lacksWord(message) || lacksReason(message)
    ? chunks
        .filter((it) => {
          const { type, data } = fieldsOf(it);
          const { status } = fieldsOf(data);
          return type === 'data-uncertain' || (type === 'data-approval' && status === 'denied');
        })
        .reduce(withChunk, message)
    : message;

/** The id of a question begins with that of its answer. */
const answerTo = ({ id }: UiMessage): UiMessage => ({
  id: id.split('/', 1)[0] ?? '',
  role: 'assistant',
  parts: [],
});

/** The messages of the history. Answers that this tab has seen keep what the history lacks, such as sources and errors. */
const merged = (shown: readonly UiMessage[], { messages, running }: History) => {
  const seen = new Map(shown.map((message) => [message.id, message]));
  return messages.flatMap((message, at) => {
    if (running !== undefined && at === messages.length - 1) return [message];
    const before = seen.get(message.id);
    const failed = isUnanswered(message, at, messages) && failedAfter(message, shown);
    const known =
      before === undefined || isSame(before, message)
        ? (before ?? message)
        : withCalls(before, message);
    return failed ? [known, failed] : [known];
  });
};

/** Several questions of one call have one answer, after the last of them. */
const isUnanswered = (message: UiMessage, at: number, messages: readonly UiMessage[]): boolean => {
  const next = messages[at + 1];
  return (
    isQuestion(message) &&
    (next === undefined || (isQuestion(next) && answerTo(next).id !== answerTo(message).id))
  );
};

/** The answer to a question that has failed before its first word: the history has nothing of it. */
const failedAfter = (question: UiMessage, shown: readonly UiMessage[]): UiMessage | undefined => {
  const known = shown.findIndex(({ id }) => id === question.id);
  const at = known === -1 ? shown.findLastIndex((it) => isSame(it, question)) : known;
  const next = shown[at + 1];
  return at !== -1 && next?.end?.error !== undefined ? next : undefined;
};

/** The message of the history, with what this tab knows of its tool calls: the user's words and decisions, and those that a message has cancelled. */
const withCalls = (before: UiMessage, message: UiMessage): UiMessage => {
  const cancelled = toolsIn(before).filter(({ state }) => state === 'cancelled');
  const parts = message.parts.map((part) =>
    part.type === 'tool' && part.state === 'failed'
      ? (cancelled.find(({ toolCallId }) => toolCallId === part.toolCallId) ?? part)
      : part,
  );
  const kept = before.parts.filter((it) => it.type === 'approval' || it.type === 'uncertain');
  const isKept = (part: UiPart): boolean =>
    part.type === 'uncertain' &&
    kept.some((it) => it.type === part.type && it.data.toolCallId === part.data.toolCallId);
  return { ...message, parts: [...parts.filter((part) => !isKept(part)), ...kept] };
};

const isSame = (one: UiMessage, other: UiMessage | undefined): boolean => {
  const text = (message: UiMessage): string =>
    `${message.role} ${plainTextOf(message).replaceAll(/\s/gu, '')} ${toolsIn(message).map(isOver).join(' ')}`;
  return other !== undefined && text(one) === text(other);
};

/** The conversation was deleted. What the user writes stays: also the question that is being edited. */
export const deleted: Update = (state) =>
  cleared({
    ...{ ...settled, status: 'ready', running: undefined, elsewhere: 'deleted' },
    ...(state.editing === undefined && { messages: [], branches: {}, head: undefined }),
    title: undefined,
  })(state);

export const removed =
  (id: string | undefined): Update =>
  (state) => ({ ...state, unsent: state.unsent.filter((message) => message.id !== id) });

/** The state with an unsent message, instead of an earlier one with its id. */
export const added =
  (message: Omit<Unsent, 'role'>): Update =>
  (state) => {
    const { unsent } = removed(message.id)(state);
    return cleared({ unsent: [...unsent, { role: 'user', ...message }] })(state);
  };

/** Sets the state, and forgets the last problem. */
export const cleared =
  (change: Partial<Conversation>): Update =>
  ({ problem: _, ...state }) => ({ ...state, ...change });

export const steering =
  (change: (waiting: readonly string[]) => readonly string[]): Update =>
  (state) => ({ ...state, steering: change(state.steering) });

export const problemOf = (error: unknown): { readonly text: string } => ({
  text: error instanceof Refusal ? error.message : 'The server cannot be reached.',
});

export const chunkUpdate =
  (chunk: { readonly type: string; readonly messageId?: unknown }): Update =>
  (state) => {
    const { messages, sending, unsent } = state;
    if (chunk.type === 'start') {
      const sent = unsent.filter((message) => message.id === sending?.id);
      const known = [
        ...(sending?.messages ?? messages),
        ...sent.map(({ id, role, parts }) => ({ id, role, parts })),
      ];
      return {
        ...removed(sending?.id)(state),
        sending: undefined,
        messages: typeof chunk.messageId === 'string' ? withStart(known, chunk.messageId) : known,
      };
    }
    const last = messages.at(-1);
    return last?.role === 'assistant'
      ? { ...state, messages: messages.with(-1, withChunk(last, chunk)) }
      : state;
  };

/** The tool of the running answer that waits for approval. */
export const askedIn = ({ messages, status }: Conversation): string | undefined =>
  status === 'answering' ? messages.slice(-1).flatMap(approvalsIn)[0]?.toolName : undefined;

/** The messages, once another one cancels the tool calls that wait. */
export const withCancelled = (messages: readonly UiMessage[]): readonly UiMessage[] => {
  const last = messages.at(-1);
  if (last === undefined || isQuestion(last)) return messages;
  const waiting = new Set(
    [...waitingIn(last), ...uncertainIn(last), ...approvalsIn(last)].map((it) => it.toolCallId),
  );
  return waiting.size === 0
    ? messages
    : messages.with(-1, {
        ...last,
        parts: last.parts.map((part) =>
          part.type === 'tool' && waiting.has(part.toolCallId)
            ? { ...part, state: 'cancelled', errorText: 'Your next message cancelled it.' }
            : part,
        ),
      });
};
