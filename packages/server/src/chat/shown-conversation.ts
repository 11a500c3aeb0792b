import type { Entry, Message, MessageTree } from '@millrace/core';
import type { CallStore } from '@millrace/core/journal';
import { leafBelow, pathTo } from '@millrace/core/values';
import { map, type Observable, of } from 'rxjs';
import { answerEnd, callOf, questionIn } from './answers.js';
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
  /** By the id of a question: the other questions that were asked there, and itself, the oldest first. */
  readonly branches: Readonly<Record<string, readonly string[]>>;
}

export const nothingShown: ShownConversation = {
  messages: [],
  running: undefined,
  head: null,
  branches: {},
};

/** What is shown of a tree and of the calls that have not ended. `at`: a message, or a call, that must be shown. */
export const shownOf = (
  tree: MessageTree,
  open: readonly OpenRun[],
  at?: string,
): ShownConversation & { readonly run: OpenRun | undefined } => {
  const run = at === undefined ? runAtHead(tree, open) : runAt(tree, open, at);
  const path =
    run === undefined ? pathTo(tree, at && newestBelow(tree, at)) : pathBefore(tree, open, run);
  const questions = [...path, ...(run?.question ?? [])].filter(({ role }) => role === 'user');
  const branches = questions.flatMap(({ id }) => {
    const ids = asksBeside(tree, open, id);
    return ids.length > 1 ? [[id, ids] as const] : [];
  });
  const messages = [...path, ...(run?.question ?? [])];
  return {
    messages,
    running: run?.callId,
    head: shownIdOf(messages) ?? null,
    branches: Object.fromEntries(branches),
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
  const path = pathTo(tree);
  const own = new Set(path.map(({ id }) => id));
  return open.findLast(
    ({ callId, after, replaces }) =>
      after === undefined ||
      after === tree.head ||
      (replaces !== undefined && own.has(replaces)) ||
      callOf(tree.head ?? '') === callId ||
      open.some((other) => other.callId === after),
  );
};

const runAt = (tree: MessageTree, open: readonly OpenRun[], at: string): OpenRun | undefined => {
  const asked = open.find(
    ({ callId, question }) => callId === at || question.some(({ id }) => id === at),
  );
  if (asked !== undefined) return asked;
  const leaf = newestBelow(tree, at);
  return open.find(({ callId, after }) => after === leaf || callOf(leaf) === callId);
};

/** The messages before a call that runs: what it has stored is shown with its events. */
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

/** The questions after the same message, those of open calls last. */
const asksBeside = (tree: MessageTree, open: readonly OpenRun[], id: string): readonly string[] => {
  const run = open.find(({ question }) => question.some((it) => it.id === id));
  const entry = questionIn(tree, callOf(id), id);
  const after = entry === undefined ? placeOf(tree, run) : entry.after;
  const stored = tree.entries.filter(
    (other: Entry) => other.after === after && other.message.role === 'user',
  );
  const ids = stored.map(({ message }) => message.id);
  const asking = open.flatMap((other) => {
    const first = other.question[0]?.id;
    return first !== undefined && placeOf(tree, other) === after && !ids.includes(first)
      ? [first]
      : [];
  });
  return [...ids, ...asking];
};

const placeOf = (tree: MessageTree, run: OpenRun | undefined): string | null =>
  run?.after === undefined ? tree.head : run.after;
