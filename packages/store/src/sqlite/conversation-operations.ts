import type { AppendOptions } from 'millrace';
import type { EntryText, MessageText } from '../sql/conversation-table.js';
import { conversationWork, type ConversationWork } from '../sql/conversation-work.js';
import type { Work } from '../sql/work.js';
import { conversationStatements } from './conversation-statements.js';
import { type Operation, read, write } from './operation.js';
import { runWorkIn } from './run-work.js';

/** Names a conversation: the encoded id of its session, and the id. */
type Named = readonly [key: string, sessionId: string];

const worked =
  <Given extends readonly unknown[], Result>(
    work: (on: ConversationWork, ...given: Given) => Work<Result>,
  ): Operation<[Named, ...Given], Result>['run'] =>
  (database, [key, sessionId], ...given) =>
    runWorkIn(database, work(conversationWork(conversationStatements, key, sessionId), ...given));

/** The operations of a `ConversationTable`. */
export const conversationOperations = {
  loadConversation: read(worked((on, at: string | null | undefined) => on.load(at))),
  lastOfConversation: read(worked((on, at: string | null | undefined) => on.last(at))),
  appendToConversation: write(
    worked((on, messages: readonly MessageText[], options: AppendOptions) =>
      on.append(messages, options),
    ),
  ),
  branchesOfConversation: read(worked((on, at: string) => on.branches(at))),
  moveHeadOfConversation: write(worked((on, to: string) => on.moveHead(to))),
  removeFromConversation: write(worked((on, at: string) => on.remove(at))),
  wholeConversation: read(worked((on) => on.all())),
  replaceConversation: write(
    worked((on, entries: readonly EntryText[], head: string | null) => on.replace(entries, head)),
  ),
};
