import { filesIn, isQuestion, plainTextOf, type UiMessage } from './ui-message.js';

/** A message that the server is not known to have. */
export interface Unsent extends UiMessage {
  /** An edit replaces a question, and an addition was meant for the running answer. */
  readonly kind: 'question' | 'edit' | 'addition';
  /** The number of questions before it when it was sent, or `neverSent`. */
  readonly after: number;
}

/** The `after` of a message that was never sent. */
export const neverSent = Number.MAX_SAFE_INTEGER;

/** Whether the history has a message that was sent. */
export const hasArrived = (sent: Unsent, messages: readonly UiMessage[]): boolean => {
  const { kind, after } = sent;
  const text = plainTextOf(sent);
  const questions = messages.filter(isQuestion);
  const before = questions[after - 1];
  return (
    questions.slice(after, kind === 'edit' ? after + 1 : undefined).some(
      (question) =>
        plainTextOf(question) === text &&
        // An edit may only have removed a file, and the server keeps none that it cannot show.
        (kind !== 'edit' || filesIn(question).length <= filesIn(sent).length),
    ) ||
    (kind === 'addition' &&
      messages
        .slice(before === undefined ? 0 : messages.indexOf(before))
        .some(({ parts }) => parts.some((part) => part.type === 'steered' && part.text === text)))
  );
};

/** Keeps unsent messages of a conversation. */
export interface Drafts {
  readonly read: (id: string) => readonly Unsent[];
  readonly write: (id: string, unsent: readonly Unsent[]) => void;
}

export type Kept = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/** The storage of the tab. A browser may keep it from a frame of another site: then nothing is kept. */
export const tabStorage = (): Kept => {
  try {
    return sessionStorage;
  } catch {
    return { getItem: () => null, setItem: () => undefined, removeItem: () => undefined };
  }
};

const draftsKey = (chatId: string): string => `millrace.unsent.${chatId}`;

/** The unsent messages of a conversation, which a tab keeps over reloads and other conversations. */
export const draftsIn = (storage: Kept): Drafts => ({
  read: (chatId) => {
    try {
      const value: unknown = JSON.parse(storage.getItem(draftsKey(chatId)) ?? '[]');
      return Array.isArray(value) ? value.filter(isUnsent) : [];
    } catch {
      return [];
    }
  },
  write: (chatId, unsent) => {
    try {
      if (unsent.length === 0) storage.removeItem(draftsKey(chatId));
      else storage.setItem(draftsKey(chatId), JSON.stringify(unsent));
    } catch {
      // They last as long as the conversation is shown.
    }
  },
});

/** Only this page writes them, but an earlier version of it may have. */
const isUnsent = (value: unknown): value is Unsent =>
  typeof value === 'object' &&
  value !== null &&
  'id' in value &&
  'kind' in value &&
  'after' in value &&
  'parts' in value &&
  Array.isArray(value.parts);
