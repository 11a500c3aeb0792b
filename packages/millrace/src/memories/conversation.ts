import {
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  from,
  map,
  type Observable,
  of,
  take,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import { continueWith } from '../flow/eventual.js';
import { type Conversation, loadConversation$, splitInput } from '../call/layers/conversation.js';
import type { Call } from '../seams/call.js';
import type { CallInfo, Reply } from '../values/reply.js';
import { contained, failAs } from '../flow/contained.js';
import { deadline, limitsOf } from '../flow/deadline.js';
import {
  isMillraceError,
  messageOf,
  MillraceError,
  misuse,
  toMillraceError,
} from '../values/errors.js';
import {
  type GivenMessage,
  type InputMessage,
  givenHistory,
  isEarlier,
  readHistory,
  voices,
} from '../seams/input.js';
import { withBlocks } from '../seams/given-message.js';
import type { Layer, Context, Use } from '../seams/layer.js';
import { trusted } from '../seams/through.js';
import { appended$, loadAt$, type Memory, noMemory } from '../values/memory.js';
import type { Place } from '../values/message-tree.js';
import { defined } from '../values/json.js';
import { checkOptions, isFlag, type Rule } from '../values/options.js';
import { type Message, type ToolMessage, freezeMessage, textOf } from '../values/message.js';
import { cutObservation } from '../values/tool-output.js';
import { remember$ } from '../phases/remember.js';
import { repaired } from '../seams/repaired.js';
import { paired } from '../values/pairing.js';
import {
  cancellationOf,
  cancelledIn,
  goneOn,
  isCancellation,
  type OnSuspended,
  reportCancelled,
} from './cancel-suspended.js';
import { isMessage, isToolResult } from '../values/shape.js';
import { cell } from '../step.js';
import { recorded } from './recorded.js';
import {
  assertResumes,
  brought$,
  continueBelow,
  lateId,
  remembering,
  suspensionsIn,
  waitingTools,
  withResults,
} from './suspend.js';
import { layerPlaces } from '../seams/layer-places.js';
import { loopProgress, callProgress, storeOnFailure$ } from '../seams/progress.js';
import { suspensionsOf } from '../phases/settle.js';

/**
 * A layer that loads and stores the conversation in the `memory` of a call, and inserts late results of suspended
 * tools. Sessions and `history` include it; add it to a custom layer that sets `call.memory`.
 */
export const conversation: Layer = trusted({
  name: 'conversation',
  priority: layerPlaces.conversation,
  single: true,
  call: (context) => (next) => (call) =>
    loadConversation$(
      // A call that is cut before its history is known has the messages that it brought.
      { ...call, late: [...call.late, ...keptBy(call, paired(call.history), context)] },
      context,
      (willRun) => earlier$(call, context, willRun),
      (given) => {
        if (given.memory === noMemory) return next(given);
        context.local(placed).opened?.(given.after);
        const opened = { ...given, memory: onBranch(given.memory, given.after, context) };
        context.local(remembering).add(context.info.callId);
        continueBelow(context, opened, splitInput(call.input).results);
        if (context.local(failures).mode === 'keep') {
          context.local(callProgress).onFailure$ = (error) =>
            keptOnFailure$(opened, context, error);
        }
        return next(opened).pipe(
          catchError((error: unknown) =>
            concat(
              storeOnFailure$(context, error),
              throwError(() => toMillraceError(error)),
            ),
          ),
          continueWith((reply) => saved$(opened, reply, context).pipe(defaultIfEmpty(reply))),
        );
      },
    ),
});

/** The place that a call continues after. Set by sessions. */
export const placed = cell('call', (): CallPlace => ({}));

interface CallPlace extends Place {
  /** The call that asked with this input first: it is stored under its ids, and what that call stored after it is left out. */
  readonly asks?: string;
  /** Called with the id of the message that the call continues after; undefined for a memory without branches. */
  readonly opened?: (after: string | null | undefined) => void;
}

/** The memory of one call: each append comes after the one before, also if others append meanwhile. */
const onBranch = (
  memory: Memory,
  after: string | null | undefined,
  { info: { callId }, local }: Pick<Context, 'info' | 'local'>,
): Memory => {
  const { asks, replaces } = local(placed);
  const isTree = memory.branches$ !== undefined;
  if (!isTree && asks === undefined) return memory;
  // With what others have said since the question.
  const renames = [
    [`${callId}/input/`, `${asks}/input/`],
    [`given/${callId}/`, `given/${asks}/`],
  ] as const;
  const stored = (message: Message): Message => {
    const [own, first] = renames.find(([start]) => message.id.startsWith(start)) ?? [];
    if (asks === undefined || own === undefined) return message;
    return freezeMessage({ ...message, id: `${first}${message.id.slice(own.length)}` });
  };
  let last = after;
  return {
    load$: (options) => memory.load$(options),
    ...(isTree && { branches$: (at) => memory.branches$?.(at) ?? EMPTY }),
    append$: (messages, options) =>
      defer(() =>
        appended$(memory, messages.map(stored), {
          ...options,
          ...(isTree && defined({ after: last, replaces })),
        }),
      ).pipe(
        tap(({ appended }) => {
          last = appended.at(-1)?.id ?? last;
        }),
      ),
  };
};

const saved$ = (
  { memory, history, input, late }: Call,
  { id, role, name, content, iterations }: Reply,
  { hooks, local }: Context,
): Observable<never> => {
  const state = local(callProgress);
  state.isRemembered = true;
  state.onFailure$ = undefined;
  const { concluded: run = local(loopProgress).run } = state;
  // A layer may have created the reply.
  const { messages, stored } = run ?? { messages: [...history, ...input], stored: history.length };
  const own = messages.findLast((message) => message.id === id);
  const hasAnswer =
    content.every(({ type }) => type === 'text') &&
    textOf({ content }) === textOf(own ?? { content: [] });
  const last: Message = {
    id: own === undefined ? id : `${id}/reply`,
    role,
    content,
    ...(name === undefined ? {} : { name }),
  };
  const lacking = [...messages.slice(stored), ...(hasAnswer ? [] : [last])];
  return remember$({ hooks }, memory, run ?? { iteration: iterations, late }, lacking);
};

export const failures = cell('call', (): { mode: OnFailure } => ({ mode: 'keep' }));

/** Whether memory keeps the input and tool calls of a failed call. */
export type OnFailure = 'keep' | 'discard';

const keepMs = 5_000;

/** Stores the messages of a failed call, unless it was aborted. Never errors. */
const keptOnFailure$ = (opened: Call, context: Context, error: unknown): Observable<never> => {
  if (isMillraceError(error) && error.code === 'aborted') return EMPTY;
  const { hooks, scheduler } = context;
  return kept$(opened, context).pipe(
    deadline(keepMs, scheduler, 'The memory'),
    catchError((cause: unknown) => {
      const message = `The messages of the failed call were not stored. ${messageOf(cause)}`;
      hooks.report(hooks.iteration(), { type: 'warning', message });
      return EMPTY;
    }),
  );
};

const kept$ = (
  { memory, history, input, late }: Call,
  { hooks, info, local }: Context,
): Observable<never> =>
  defer(() => {
    const { run, acting } = local(loopProgress);
    const done = run ?? { messages: [...history, ...input], stored: history.length, late };
    const { messages, stored } = done;
    // A journaled call may be resumed, which has the results of its tools.
    const open = acting === undefined || local(recorded).by !== undefined ? [] : [acting];
    const begun = open.flatMap(({ message, results }): readonly Message[] => [
      message,
      { id: `${message.id}/results`, role: 'tool', content: results },
    ]);
    const lacking = [...messages.slice(stored), ...begun];
    // Results for suspended tools can be passed again. Those of tools that ran with them stay, and what the message has cancelled.
    const place = {
      iteration: hooks.iteration(),
      late: done.late.filter((it) => isCancellation(it) || isEarlier(it) || it.id === lateId(info)),
    };
    return remember$({ hooks }, memory, place, paired(lacking), true);
  });

/** The earlier conversation, from memory or the caller, with the results for suspended tools. */
const earlier$ = (
  call: Call,
  context: Pick<Context, 'info' | 'hooks' | 'local'>,
  /** Whether the call runs: only then results are taken. */
  willRun: boolean,
): Observable<Conversation> => {
  const { memory, input, late } = call;
  const { local } = context;
  const { messages } = local(givenHistory);
  const past$: Observable<Past> =
    messages === undefined ? loaded$(memory, local(placed).after) : of({ messages });
  return past$.pipe(
    concatMap(({ messages: loaded, ...after }) => {
      const { asks } = local(placed);
      const isAsked = ({ id }: Message): boolean => id.startsWith(`${String(asks)}/input/`);
      const asked = asks === undefined ? -1 : loaded.findIndex(isAsked);
      const earlier = asked === -1 ? loaded : loaded.slice(0, asked);
      const own = willRun ? input : splitInput(input).input;
      const past = repaired(usable(earlier, own, context.info), context);
      // A call that is made again finds what it brought.
      const given = asked === -1 ? repaired(call.history, context) : [];
      const kept = keptBy(call, given, context);
      const isShown = memory === noMemory;
      const history = [...past, ...(isShown ? numbered(given, past.length) : kept)];
      const added = [...late, ...kept];
      if (!willRun) return of({ history, late: added, ...after });
      return settled$({ history, ...after }, call, context).pipe(
        map((settled) => ({
          history: settled.length === 0 ? history : withResults([...history, ...settled]),
          late: [...added, ...settled],
          ...after,
        })),
      );
    }),
  );
};

/** The messages before the question that a memory keeps, under ids that the conversation does not have. */
const keptBy = (
  { memory }: Pick<Call, 'memory'>,
  given: readonly Message[],
  { info: call }: Pick<Context, 'info'>,
): readonly Message[] => (memory === noMemory ? [] : numbered(given, 0, `${call.callId}/`));

const numbered = (messages: readonly Message[], start: number, prefix = ''): readonly Message[] =>
  messages.map((message, index) =>
    freezeMessage({ ...message, id: `history/${prefix}${start + index}` }),
  );

/** The messages that settle suspended tool calls: the results of the input, and error results if it has a message instead. */
const settled$ = (
  { history, after }: Pick<Call, 'after' | 'history'>,
  { input: given, options, toolkit }: Pick<Call, 'input' | 'options' | 'toolkit'>,
  { hooks, local }: Pick<Context, 'hooks' | 'local'>,
): Observable<readonly ToolMessage[]> => {
  const { results, input } = splitInput(given);
  const isAlone = input.length === 0;
  const mayLack = !isAlone && local(suspended).mode === 'cancel';
  assertResumes(history, results, { isAlone, mayLack });
  const brought = results?.content ?? [];
  const ids = new Set(brought.map(({ toolCallId }) => toolCallId));
  const cancellation = mayLack ? cancellationOf(history, after, goneOn, ids) : undefined;
  // Results for the calls below a tool call come through its own.
  const below = waitingTools(history).flatMap(suspensionsOf);
  const others = new Set(below.map(({ toolCall }) => toolCall.id));
  const content = brought.filter(({ toolCallId }) => !others.has(toolCallId));
  const { maxObservation } = limitsOf(options.limits);
  const late = [
    ...(cancellation === undefined ? [] : [cancellation]),
    ...(results === undefined || content.length === 0 ? [] : [{ ...results, content }]),
  ];
  return from(late).pipe(
    concatMap((message) => brought$(hooks, toolkit.current, history, message)),
    map((message) => cutResults(message, maxObservation)),
    toArray(),
    tap(() => {
      const cancelled = new Set(cancellation === undefined ? [] : cancelledIn(cancellation));
      const ended = suspensionsIn(history).filter(({ toolCall }) => cancelled.has(toolCall.id));
      reportCancelled(ended, { hooks, local });
    }),
  );
};

/** The effect of a message on tools that wait. A call without a session refuses it: it has no memory for their results. */
export const suspended = cell('call', (): { mode: OnSuspended } => ({ mode: 'refuse' }));

/** Earlier messages, and the id of the last one as it is stored, which a memory may show otherwise. */
type Past = Pick<Call, 'after'> & { readonly messages: readonly Message[] };

const loaded$ = (memory: Memory, place: string | null | undefined): Observable<Past> => {
  if (memory === noMemory) return of({ messages: [] });
  const loadTo$ = (at: string | null | undefined): Observable<Past> =>
    loadAt$(memory, at).pipe(
      contained(),
      take(1),
      defaultIfEmpty([]),
      map((messages) => {
        if (memory.branches$ === undefined) return { messages };
        return { messages, after: at === undefined ? (messages.at(-1)?.id ?? null) : at };
      }),
    );
  // The path to a message never changes, also if others append in between.
  const last$ = defer(
    () => memory.last$?.(place === undefined ? undefined : { at: place }) ?? of(place),
  );
  return last$.pipe(
    contained(),
    take(1),
    concatMap(loadTo$),
    failAs('memory', 'The messages could not be loaded'),
  );
};

const cutResults = (results: ToolMessage, most: number): ToolMessage => ({
  ...results,
  content: results.content.map((it) => ({ ...it, content: cutObservation(it.content, most) })),
});

const isList = (value: unknown): boolean => Array.isArray(value);

const usable = (
  loaded: readonly Message[],
  input: readonly Message[],
  { callId }: CallInfo,
): readonly Message[] => {
  const isWhole = (it: Message): boolean =>
    isMessage(it) && (it.role !== 'tool' || it.content.every(isToolResult));
  if (!isList(loaded) || !loaded.every(isWhole)) {
    throw new MillraceError('memory', 'The memory did not emit a list of messages.');
  }
  const history = withResults(loaded);
  if (loaded.some(({ id }) => input.some((message) => message.id === id))) {
    throw new MillraceError(
      'conflict',
      `The session already had a call '${callId}'. Give each call a unique id, or none.`,
    );
  }
  return history;
};

interface HistoryLayer extends Layer {
  readonly messages: readonly GivenMessage[];
}

/**
 * Shows earlier messages before the input of a call, without storing them; guards do not check them, unless `guard` is set. Messages of other
 * agents are shown as text. A call's history replaces its agent's. A journal records the messages.
 *
 * Errors with `config` in a session, which has its own history, and with `invalidRequest` if the messages are invalid.
 */
export const history = (
  messages: readonly GivenMessage[],
  options: HistoryOptions = {},
): readonly Layer[] => {
  checkOptions('history()', options, historyRules);
  const layer: HistoryLayer = trusted({
    name: 'history',
    priority: layerPlaces.additions,
    single: true,
    messages,
    call:
      ({ info, local }) =>
      (next) =>
      (call) => {
        if (call.memory === noMemory) {
          const given = local(givenHistory);
          given.messages = readHistory(messages, { ...info, ...local(voices) });
          given.isGuarded = options.guard;
        }
        // In a team, an agent with a memory already has the messages.
        else if (info.parentId === undefined) throw ofSession();
        return next(call);
      },
  });
  return [layer, conversation];
};

export interface HistoryOptions {
  /** Whether guards check the questions in it, as those in a list of messages. Default: false, you vouch for them. */
  readonly guard?: boolean | undefined;
}

const historyRules: Readonly<Record<keyof HistoryOptions, Rule>> = { guard: isFlag };

const ofSession = (): MillraceError =>
  misuse("history(): a session has its own history. Leave it out of 'use'.");

export const historyIn = (use: Use = []): readonly InputMessage[] | undefined =>
  use
    .flat()
    .findLast(isHistory)
    ?.messages.map((message) => withBlocks(message));

const isHistory = (layer: Layer): layer is HistoryLayer =>
  layer.name === 'history' && 'messages' in layer && Array.isArray(layer.messages);
