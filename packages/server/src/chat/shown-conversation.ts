import type { Message, MessageTree } from 'millrace';
import type { CallStore } from 'millrace/journal';
import { leafBelow, pathTo } from 'millrace/values';
import { map, type Observable, of } from 'rxjs';
import { answerEnd, callOf } from './answers.js';
import { conflictAt } from './guard.js';
import { shownIdOf } from './history.js';
import { pastOf$ } from './past.js';
import type { OpenRun } from './runs.js';

/** A branch of a conversation, as a client shows it. */
export interface ShownConversation {
  readonly messages: readonly Message[];
  /** The call that runs at its end. */
  readonly running: string | undefined;
  /** The client's id of its last message. */
  readonly head: string | null;
  /** The alternatives of each shown message by its id, oldest first, including itself: the messages that follow the same message. */
  readonly branches: Readonly<Record<string, readonly string[]>>;
}

export const nothingShown: ShownConversation = {
  messages: [],
  running: undefined,
  head: null,
  branches: {},
};

/** The shown branch of a tree, with the call that runs at its end. `at`: a message, or a call, that must be shown. */
export const shownOf = (
  tree: MessageTree,
  open: readonly OpenRun[],
  at?: string,
): ShownConversation & { readonly run: OpenRun | undefined } => {
  const run = at === undefined ? runAtHead(tree, open) : runAt(tree, open, at);
  const path =
    run === undefined ? pathTo(tree, at && newestBelow(tree, at)) : pathBefore(tree, open, run);
  const messages = [...path, ...(run?.question ?? [])];
  return {
    messages,
    running: run?.callId,
    head: shownIdOf(messages) ?? null,
    branches: branchesOf(tree, open, messages),
    run,
  };
};

/** Adds the question of a call that another process has begun. */
export const withQuestion$ = (
  calls: CallStore,
  { run, ...shown }: ReturnType<typeof shownOf>,
): Observable<ShownConversation> =>
  run === undefined || run.question.length > 0
    ? of(shown)
    : pastOf$(calls, run.callId).pipe(
        map(({ question }) => ({ ...shown, messages: [...shown.messages, ...question] })),
      );

/** The end of the newest branch through a message or a call. Throws a 409 if it is unknown. */
export const newestBelow = (tree: MessageTree, at: string): string => {
  const known = tree.entries.some(({ message }) => message.id === at) ? at : answerEnd(tree, at);
  if (known === undefined) {
    throw conflictAt(`The conversation has no message '${at.slice(0, 100)}'.`, tree.head);
  }
  return leafBelow(tree, known);
};

/** The call that continues the head, or what replaces it: the last one that was asked. */
const runAtHead = (tree: MessageTree, open: readonly OpenRun[]): OpenRun | undefined => {
  const own = new Set(pathTo(tree).map(({ id }) => id));
  return open.findLast(({ callId, after, replaces }) => {
    const stored = tree.entries.find(({ message }) => callOf(message.id) === callId);
    if (stored !== undefined) return own.has(stored.message.id);
    const isReplacing = replaces !== undefined && own.has(replaces);
    const isNext = after === undefined || after === tree.head;
    return isNext || isReplacing || open.some((other) => other.callId === after);
  });
};

const runAt = (tree: MessageTree, open: readonly OpenRun[], at: string): OpenRun | undefined => {
  const asked = open.find(
    ({ callId, question }) => callId === at || question.some(({ id }) => id === at),
  );
  if (asked !== undefined) return asked;
  const leaf = newestBelow(tree, at);
  return open.find(({ callId, after }) => after === leaf || callOf(leaf) === callId);
};

/** The messages before a running call. Its own messages are shown by its events. */
const pathBefore = (
  tree: MessageTree,
  open: readonly OpenRun[],
  { callId, after }: OpenRun,
): readonly Message[] => {
  const before = open.find((run) => run.callId === after);
  if (before !== undefined) return [...pathBefore(tree, open, before), ...before.question];
  const path = pathTo(tree, after);
  const begun = path.findIndex(({ id }) => callOf(id) === callId);
  return begun === -1 ? path : path.slice(0, begun);
};

/** By the id of a shown message: the ids of those that come after the same message, if there are several. */
const branchesOf = (
  tree: MessageTree,
  open: readonly OpenRun[],
  shown: readonly Message[],
): ShownConversation['branches'] =>
  Object.fromEntries(
    shown.flatMap((message) => {
      const ids = besides(tree, open, placeOf(tree, open, message.id));
      return message.role !== 'tool' && ids.length > 1 ? [[shownAs(message), ids] as const] : [];
    }),
  );

/** The messages that clients can show after a message, those of open calls last. */
const besides = (
  tree: MessageTree,
  open: readonly OpenRun[],
  after: string | null,
): readonly string[] => {
  const stored = tree.entries.filter(
    (entry) => entry.after === after && entry.message.role !== 'tool',
  );
  const asking = open.flatMap(({ question }) => question.slice(0, 1));
  const own = asking.filter(({ id }) => placeOf(tree, open, id) === after).map(({ id }) => id);
  return [...new Set([...stored.map(({ message }) => shownAs(message)), ...own])];
};

/** The client's id of a message: that of a question, or the call that answers. */
const shownAs = ({ id, role }: Pick<Message, 'id' | 'role'>): string =>
  role === 'user' ? id : callOf(id);

const placeOf = (tree: MessageTree, open: readonly OpenRun[], id: string): string | null => {
  const entry = tree.entries.find(({ message }) => message.id === id);
  if (entry !== undefined) return entry.after;
  const run = open.find(({ question }) => question.some((it) => it.id === id));
  return run?.after === undefined ? tree.head : run.after;
};
