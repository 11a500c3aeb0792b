import { type AssistantMessage, textOf } from 'millrace';
import type { CallRef, Part } from './part.js';
import { createShownMessage, type ShownMessage } from './shown-message.js';

/** The messages of one call, one after the other. */
export interface ShownMessages {
  /** The message that is shown now. */
  current(): ShownMessage | undefined;
  /** The current or last message of the step. A reply that repeats a message of an earlier step is shown again. */
  readonly latest: () => ShownMessage | undefined;
  /** The tool calls of the current message that were denied. */
  readonly denied: Set<string>;
  /** The message with this id. Ends another one. */
  open(id: string): readonly [ShownMessage, readonly Part[]];
  /** The current message; one with this id, if its own events were filtered out. */
  currentOr(id: string): ShownMessage;
  discard(messageId: string): readonly Part[];
  /** Shows the last message further, if it has this id. */
  reopen(id: string): void;
  /** Begins a message with this id again, under a new id in the client. */
  again(id: string): ShownMessage;
  /** Ends a message that the client shows wrongly. */
  void(shown: ShownMessage): readonly Part[];
  hasEnded(id: string): boolean;
  end(): readonly Part[];
  /** Forgets the last message, at the start of a step. */
  forgetLatest(): void;
  /** Treats a message that another call has shown for this one as its own. */
  readonly adopt: (message: ShownMessage) => void;
}

export const createShownMessages = (by: CallRef): ShownMessages => {
  let current: ShownMessage | undefined;
  let last: ShownMessage | undefined;
  const endedIds = new Set<string>();
  const denied = new Set<string>();
  let edits = 0;

  const start = (id: string, messageId = id): ShownMessage => {
    current = createShownMessage(by, id, messageId);
    return current;
  };
  const end = (): readonly Part[] => {
    const parts = current?.close() ?? [];
    if (current !== undefined) endedIds.add(current.id);
    last = current ?? last;
    current = undefined;
    denied.clear();
    return parts;
  };
  const open: ShownMessages['open'] = (id) => {
    if (current?.id === id) return [current, []];
    const parts = end();
    return [start(id), parts];
  };
  const voided = ({ hasBegun, messageId }: ShownMessage): readonly Part[] =>
    hasBegun() ? [...end(), { type: 'voided', by, messageId }] : end();
  const reopen = (id: string): void => {
    if (current === undefined && last?.id === id) current = last;
  };
  return {
    current: () => current,
    latest: () => current ?? last,
    denied,
    open,
    currentOr: (id) => current ?? start(id),
    discard: (messageId) => {
      reopen(messageId);
      return current?.id === messageId ? voided(current) : [];
    },
    reopen,
    again: (id) => {
      edits += 1;
      return start(id, `${id}~${edits}`);
    },
    void: voided,
    hasEnded: (id) => endedIds.has(id),
    end,
    forgetLatest: () => {
      last = undefined;
    },
    adopt: (message) => {
      last = message;
    },
  };
};

/** Shows the missing rest of a message. If its shown text was edited, voids it and shows it again under a new id. */
export const completed = (
  messages: ShownMessages,
  { id, content }: Pick<AssistantMessage, 'id' | 'content'>,
): readonly Part[] => {
  const [shown, before] = messages.open(id);
  if (textOf({ content }).startsWith(shown.text())) return [...before, ...restOf(shown, content)];
  const voided = messages.void(shown);
  return [...before, ...voided, ...restOf(messages.again(id), content)];
};

const restOf = (shown: ShownMessage, content: AssistantMessage['content']): readonly Part[] => [
  ...shown.appendText(textOf({ content }).slice(shown.text().length)),
  ...shown.sources(content),
  ...shown.media(content),
];
