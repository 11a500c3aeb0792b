import type {
  AssistantMessage,
  Message,
  MessageTree,
  MillraceError,
  Place,
  UserMessage,
} from 'millrace';
import { pathTo } from 'millrace/values';
import type { KeptSession } from 'millrace/sessions';
import { concat, concatMap, defer, ignoreElements, map, type Observable, of } from 'rxjs';
import { conflictAt } from './guard.js';
import { shownIdOf } from './history.js';
import { answerEnd, callOf, markOf, questionIn } from './answers.js';
import type { OpenRun, Runs } from './runs.js';

/** A message as a client has it. */
export type ClientMessage =
  Pick<UserMessage, 'role' | 'content'> | Pick<AssistantMessage, 'role' | 'content'>;

/** A message that a client shows, with its own id. */
export interface ShownMessage {
  readonly id: string;
  /** The message contains the answer of this call only: the client starts a new message after tool results. */
  readonly isOwn?: boolean;
  /** Its content as the client has it; `undefined` if it has none. */
  readonly read?: () => ClientMessage | undefined;
}

/** The place of a call, as its client sees the conversation. Default: at the head. */
export interface Placing {
  /** The messages that the client shows before its question, oldest first. The last of them is the place. */
  readonly shown?: readonly ShownMessage[] | undefined;
  /** The client sends everything that it shows: if it sends no messages, the call starts a new branch. */
  readonly isWhole?: boolean | undefined;
  /** If the last shown message is unknown, the call continues at the head: its results name their tool calls. */
  readonly orAtHead?: boolean | undefined;
  /** The client's ids of the question or the answer that the call replaces. */
  readonly replaced?: readonly string[] | undefined;
  /** As `replaced`, from a client that does not say whether it regenerates; ignored if unknown to the conversation. */
  readonly mayReplace?: readonly string[] | undefined;
  /** Throws if the call must not continue there. `isRunning`: the call at this place, or one that continues the head, has not ended. */
  readonly check?: ((path: readonly Message[], isRunning: boolean) => void) | undefined;
  /** The messages that a new conversation starts with. */
  readonly earlier?: readonly Message[] | undefined;
}

export interface PlacesOptions {
  /**
   * The reaction to a client that shows messages unknown to the server, such as after a restart without a store: `refuse`
   * its request (409), or `take` its messages as the conversation. Default: `refuse`.
   */
  readonly unknownHistory?: 'refuse' | 'take' | undefined;
  /**
   * The place of a request that contains only a question, in a conversation with messages: it continues `atHead`, for
   * clients that send only their last message, or it `begins` a new branch, for clients such as assistant-ui that send an
   * edited first question this way. Default: `atHead`.
   */
  readonly loneQuestion?: 'atHead' | 'begins' | undefined;
}

/** The place of a call, and the messages before it. */
export interface Placed extends Place {
  readonly path: readonly Message[];
  /** The content of the question that the call replaces. */
  readonly question: UserMessage['content'] | undefined;
  /** Questions that the client shows and the server never received. The call asks them first. */
  readonly unsent: readonly UserInput[];
  /** Calls that the new one replaces, which have not ended. */
  readonly replacedRuns: readonly string[];
}

type UserInput = Pick<UserMessage, 'role' | 'content'>;

interface Places {
  /** Emits the place of a call. */
  place$(session: KeptSession, placing: Placing): Observable<Placed>;
}

export const createPlaces = (
  runs: Pick<Runs, 'ofSession'>,
  { unknownHistory = 'refuse', loneQuestion = 'atHead' }: PlacesOptions = {},
): Places => {
  const place$ = (session: KeptSession, placing: Placing): Observable<Placed> =>
    tree$(session).pipe(
      concatMap((tree) => {
        const open = runs.ofSession(session.id);
        const finder = createFinder(tree, open);
        const { shown, unsent } = withoutUnsent(finder, placing.shown);
        const wish = { ...placing, shown };
        const found = placeIn(finder, wish, loneQuestion);
        if (found !== 'unknown') return of({ ...placedAt(tree, found, wish, open), unsent });
        const { after, messages } = unknownOf(finder, shown ?? []);
        if (unknownHistory === 'refuse' || messages.length === 0) {
          throw unknownPlace(tree, shown?.at(-1)?.id ?? '');
        }
        const last = messages.at(-1)?.id ?? null;
        return concat(
          session.memory.append$(messages, { after }).pipe(ignoreElements()),
          tree$(session).pipe(
            map((now) => ({ ...placedAt(now, { after: last }, wish, open), unsent })),
          ),
        );
      }),
    );
  return {
    place$: (session, placing) =>
      defer(() => {
        const { earlier = [] } = placing;
        return earlier.length === 0
          ? place$(session, placing)
          : concat(
              session.memory.append$(earlier).pipe(ignoreElements()),
              place$(session, placing),
            );
      }),
  };
};

/** Emits all messages of a session. */
export const tree$ = ({ memory }: Pick<KeptSession, 'memory'>): Observable<MessageTree> =>
  defer(() => memory.all$?.() ?? of({ entries: [], head: null }));

/** The place after the last message that a client shows: the id of a message, or of a call that has not ended. */
export const shownPlace = (
  tree: MessageTree,
  open: readonly OpenRun[],
  shown: Placing['shown'],
): string | undefined => {
  const last = shown?.at(-1);
  return last && createFinder(tree, open).endOf(last);
};

/** The messages that the ids of a client stand for. */
interface Finder {
  readonly tree: MessageTree;
  readonly hasRuns: boolean;
  /** The place after a shown message: the id of a message, or of a call that has not ended. */
  endOf(shown: ShownMessage): string | undefined;
  /** The question that a message is, or that it answers, with the place before it. */
  questionOf(id: string): { readonly id: string; readonly after: string | null } | undefined;
}

const createFinder = (tree: MessageTree, open: readonly OpenRun[]): Finder => {
  const ids = new Set(tree.entries.map(({ message }) => message.id));
  const callsIn = new Set([...ids].map(callOf));
  const calls = [...callsIn, ...open.map(({ callId }) => callId)];
  /** The latest call that a client has asked with its own id of a question. */
  const askedAs = (id: string): string | undefined => {
    const mark = markOf(id);
    return calls.findLast((callId) => callId.startsWith(mark));
  };
  const isOpen = (callId: string): boolean => open.some((run) => run.callId === callId);
  /** The call that an id of a client belongs to. */
  const callOfId = (id: string): string | undefined => {
    return [askedAs(id), callOf(id), callOf(takenId(id))].find(
      (it) => it !== undefined && (isOpen(it) || callsIn.has(it)),
    );
  };
  return {
    tree,
    hasRuns: open.length > 0,
    endOf: ({ id, isOwn }) => {
      const callId = callOfId(id);
      if (callId === undefined || isOpen(callId)) return callId;
      const isQuestion = askedAs(id) !== undefined || isUser(tree, id);
      return isQuestion ? questionIn(tree, callId, id)?.message.id : answerEnd(tree, callId, isOwn);
    },
    questionOf: (id) => {
      const callId = callOfId(id);
      if (callId === undefined) return undefined;
      const entry = questionIn(tree, callId, id);
      if (entry !== undefined) return { id: entry.message.id, after: entry.after };
      const run = open.find((it) => it.callId === callId);
      if (run === undefined) return undefined;
      return { id: `${callId}/input/0`, after: run.after === undefined ? tree.head : run.after };
    },
  };
};

const isUser = ({ entries }: MessageTree, id: string): boolean =>
  entries.some(({ message }) => message.id === id && message.role === 'user');

/** Separates the last questions that the client shows but that never reached the server. */
const withoutUnsent = (
  finder: Finder,
  shown: Placing['shown'],
): { readonly shown: Placing['shown']; readonly unsent: readonly UserInput[] } => {
  if (shown === undefined) return { shown, unsent: [] };
  const isKnown = (it: ShownMessage): boolean => finder.endOf(it) !== undefined;
  const from = shown.findLastIndex((it) => isKnown(it) || it.read?.()?.role !== 'user') + 1;
  const unsent = shown.slice(from).flatMap(({ read }) => {
    const message = read?.();
    return message?.role === 'user' ? [message] : [];
  });
  return { shown: shown.slice(0, from), unsent };
};

/** The place that a client means; `unknown` if it shows messages that the server does not have. */
const placeIn = (
  finder: Finder,
  { shown, isWhole = false, orAtHead = false, replaced = [], mayReplace = [] }: Placing,
  loneQuestion: Required<PlacesOptions>['loneQuestion'],
): Place | 'unknown' => {
  const question = [...replaced, ...mayReplace]
    .map((id) => finder.questionOf(id))
    .find((it) => it !== undefined);
  const replaces = question === undefined ? {} : { replaces: question.id };
  const last = shown?.at(-1);
  const after = last === undefined ? undefined : finder.endOf(last);
  if (after !== undefined) return { after, ...replaces };
  if (last !== undefined) return orAtHead ? {} : 'unknown';
  if (question !== undefined) return { after: question.after, ...replaces };
  if (shown === undefined || isEmpty(finder)) return {};
  if (replaced.length > 0) return 'unknown';
  return isWhole || loneQuestion === 'begins' ? { after: null } : {};
};

const isEmpty = ({ tree, hasRuns }: Finder): boolean => tree.entries.length === 0 && !hasRuns;

const placedAt = (
  tree: MessageTree,
  { after, replaces }: Place,
  { check }: Placing,
  open: readonly OpenRun[],
): Omit<Placed, 'unsent'> => {
  const isRunning = open.some(({ callId }) => callId === after);
  const path = isRunning ? [] : pathTo(tree, after);
  const isQueued = after === undefined && open.some((run) => isAtHead(run, tree));
  check?.(path, isRunning || isQueued);
  const left = replaces ?? (isRunning ? undefined : leftBranch(tree, path));
  return {
    path,
    question: contentAt(tree, replaces),
    ...(after !== undefined && { after }),
    ...(left !== undefined && { replaces: left }),
    replacedRuns: open.flatMap(({ callId }) =>
      replaces !== undefined && callOf(replaces) === callId ? [callId] : [],
    ),
  };
};

const isAtHead = ({ after }: OpenRun, { head }: MessageTree): boolean =>
  after === undefined || after === head;

const contentAt = ({ entries }: MessageTree, id: string | undefined) => {
  const message = entries.find((entry) => entry.message.id === id)?.message;
  return message?.role === 'user' ? message.content : undefined;
};

/**
 * The first message of the branch that the head leaves because the client continues elsewhere: at the end of another
 * branch, or after a question whose answer the client does not have.
 */
const leftBranch = (tree: MessageTree, path: readonly Message[]): string | undefined => {
  const last = path.at(-1);
  if (last === undefined) return undefined;
  const own = new Set(path.map(({ id }) => id));
  const left = pathTo(tree).filter(({ id }) => !own.has(id));
  const isEnd = !tree.entries.some(({ after }) => after === last.id);
  const isUnanswered =
    last.role === 'user' && left.every(({ id }) => callOf(id) === callOf(last.id));
  return isEnd || isUnanswered ? left[0]?.id : undefined;
};

/** The messages of a client that the server does not have, after the last one that it has. */
const unknownOf = (
  finder: Finder,
  shown: readonly ShownMessage[],
): { readonly after: string | null; readonly messages: readonly Message[] } => {
  const known = shown.findLastIndex((it) => finder.endOf(it) !== undefined);
  const end = shown[known];
  const after = (end && finder.endOf(end)) ?? null;
  const messages = shown.slice(known + 1).flatMap(({ id, read }): readonly Message[] => {
    const message = read?.();
    if (message === undefined || message.content.length === 0) return [];
    return [{ id: takenId(id), ...message }];
  });
  return { after, messages };
};

/** The id of a message that was taken over from a client. Each one counts as a call of its own. */
const takenId = (id: string): string =>
  `taken-${encodeURIComponent(id.replaceAll(/\p{Surrogate}/gu, '\ufffd'))}/0`;

const unknownPlace = (tree: MessageTree, id: string): MillraceError =>
  conflictAt(
    `The client shows a message '${id.slice(0, 100)}' that the conversation does not have. With 'unknownHistory', chatServer() takes the messages of such a client.`,
    shownIdOf(pathTo(tree)) ?? null,
  );
