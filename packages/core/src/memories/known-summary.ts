import type { Message } from '../message.js';
import { summaryMessage } from './summary-prompt.js';

/** What a session's summary says, and of what. */
export interface Known {
  readonly text: string;
  /** The last message that it stands for. */
  readonly lastId: string;
  readonly count: number;
}

/** Parts a conversation into what a summary says and the rest. One whose last message is no longer there says nothing of it. */
export const viewOf = (
  messages: readonly Message[],
  known: Known | undefined,
): { readonly known: Known | undefined; readonly rest: readonly Message[] } => {
  const last = messages.findLastIndex(({ id }) => id === known?.lastId);
  return last === -1
    ? { known: undefined, rest: messages }
    : { known, rest: messages.slice(last + 1) };
};

/** Messages behind the summary of those before them. */
export const withSummary = (
  known: Known | undefined,
  rest: readonly Message[],
): readonly Message[] =>
  known === undefined
    ? rest
    : [summaryMessage(`summary/${known.lastId}`, known.text, known.count), ...rest];
