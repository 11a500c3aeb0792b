import {
  type BehaviorSubject,
  catchError,
  concat,
  defer,
  EMPTY,
  map,
  mergeMap,
  type Observable,
  of,
  type Subject,
  tap,
} from 'rxjs';
import {
  added,
  askedIn,
  chunkUpdate,
  cleared,
  type Command,
  type Conversation,
  deleted,
  loaded,
  problemOf,
  removed,
  set,
  settled,
  steering,
  type Update,
  withCancelled,
} from './conversation-state.js';
import {
  placed,
  requestOf,
  textPart,
  withGiven,
  withOutcome,
  withResults,
  withSent,
} from './requests.js';
import { Refusal } from './responses.js';
import type { Followed, Server } from './server.js';
import { isQuestion, isToolCall, type UiMessage, uncertainIn, waitingIn } from './ui-message.js';
import { neverSent, type Unsent } from './unsent.js';

/** The shared state of the parts of a conversation. */
export interface Context {
  readonly id: string;
  readonly server: Server;
  readonly newId: () => string;
  readonly state$: BehaviorSubject<Conversation>;
}

interface Performing {
  /** Loads the branch of a message, or the one that is continued by default. */
  readonly load$: (at?: string) => Observable<Update>;
  readonly handle$: (command: Command) => Observable<Update>;
}

/** Performs the commands that replace what the conversation does. */
export const performing = (context: Context): Performing => {
  const { id, server, newId, state$ } = context;
  const { load$, request$, send$ } = sending(context);
  const ask$ = ({ parts }: CommandOf<'ask'>): Observable<Update> => {
    const { status } = state$.value;
    const question = { id: newId(), parts, kind: 'question', after: neverSent } as const;
    // An answer that waits for approval would wait for it before the next one.
    const ready$ = askedIn(state$.value) === undefined ? load$() : server.stop$(id);
    return concat(of(added(question)), status === 'ready' ? EMPTY : ready$, send$(question.id));
  };
  const regenerate$ = ({ messageId }: CommandOf<'regenerate'>): Observable<Update> => {
    const { messages } = state$.value;
    const at = messages.findIndex((it) => it.id === messageId);
    const before = messages.slice(0, at);
    const question = before.pop();
    if (question === undefined) return EMPTY;
    const shown = [...before, { ...question, id: newId() }];
    const trigger = 'regenerate-message';
    return request$(shown, { ...placed(before, question), trigger, messageId });
  };
  const edit$ = (command: CommandOf<'edit'>): Observable<Update> => {
    const edited = editedQuestion(state$.value.messages, command, newId());
    if (edited === undefined) return EMPTY;
    const ended = set({ editing: undefined, elsewhere: undefined });
    return concat(of(added(edited), ended), send$(edited.id));
  };
  const { result$, settle$ } = bringing(context, { load$, request$ });
  const handle$: Performing['handle$'] = (command) => {
    switch (command.type) {
      case 'load':
        return load$();
      case 'switch':
        return server.switch$(id, command.messageId).pipe(map(loaded));
      case 'ask':
        return ask$(command);
      case 'discard':
        return concat(of(removed(command.messageId)), load$());
      case 'retry':
        return concat(load$(), send$(command.messageId));
      case 'regenerate':
        return regenerate$(command);
      case 'edit':
        return edit$(command);
      case 'result':
      case 'failure':
        return result$(command);
      case 'settle':
        return settle$(command);
      case 'change':
        return of(kept(command));
      default:
        return EMPTY;
    }
  };
  return { load$, handle$ };
};

/** Brings what tool calls wait for: results, and outcomes of uncertain ones. */
const bringing = (
  { id, server, state$ }: Context,
  { load$, request$ }: Pick<ReturnType<typeof sending>, 'load$' | 'request$'>,
) => {
  const result$ = (command: CommandOf<'result' | 'failure'>): Observable<Update> => {
    const { messages } = state$.value;
    const given = kept(command)(state$.value).messages;
    const own = given.find(({ parts }) => parts.some(isToolCall(command.toolCallId)));
    if (own === undefined || waitingIn(own).some((it) => it.given === undefined)) {
      return of(set({ messages: given }));
    }
    const answered = given.map((message) => (message === own ? withResults(own) : message));
    const withoutIt = (message: UiMessage) => withGiven(message, command.toolCallId, undefined);
    const refused$ = (error: unknown) =>
      concat(
        error instanceof Refusal ? of(withMessage(messages.map(withoutIt), own.id)) : EMPTY,
        defer(() => {
          throw error;
        }),
      );
    return concat(
      of(set({ messages: answered })),
      request$(answered, { messages: [requestOf(withResults(own))] }).pipe(catchError(refused$)),
    );
  };
  const settle$ = (command: CommandOf<'settle'>): Observable<Update> => {
    const shown = kept(command)(state$.value).messages;
    const outcomes = shown
      .flatMap(uncertainIn)
      .map((it) => (it.outcome === undefined ? [] : [[it.toolCallId, it.outcome] as const]));
    if (outcomes.some(({ length }) => length === 0)) return of(set({ messages: shown }));
    const sent = Object.fromEntries(outcomes.flat());
    return concat(
      of(set({ messages: shown.map(withSent) })),
      server.settle$(id, { outcomes: sent }).pipe(
        catchError((error: unknown) =>
          concat(
            of(withoutWords(Object.keys(sent))),
            defer(() => {
              throw error;
            }),
          ),
        ),
      ),
      answered$(server.join$(id)),
      defer(() => load$(state$.value.messages.at(-1)?.id)),
    );
  };
  return { result$, settle$ };
};

/** Keeps what the user has given for a tool call, or takes it back. It is sent with the others, and not while the answer runs. */
const kept =
  (command: CommandOf<'result' | 'failure' | 'settle' | 'change'>): Update =>
  (state) => {
    const { type, toolCallId } = command;
    const outcome = type === 'settle' ? command.outcome : undefined;
    const given = type === 'result' || type === 'failure' ? command : undefined;
    return {
      ...state,
      messages: state.messages.map((message) =>
        withOutcome(withGiven(message, toolCallId, given), [toolCallId], outcome),
      ),
    };
  };

/** Takes one message back to what it was. Others may have changed since. */
const withMessage =
  (before: readonly UiMessage[], messageId: string): Update =>
  (state) => ({
    ...state,
    messages: state.messages.map((message) =>
      message.id === messageId ? (before.find(({ id }) => id === messageId) ?? message) : message,
    ),
  });

/** Takes back the words for these tool calls. The state may have changed since they were sent. */
const withoutWords =
  (toolCallIds: readonly string[]): Update =>
  (state) => ({
    ...state,
    messages: state.messages.map((message) => withOutcome(message, toolCallIds, undefined)),
  });

const editedQuestion = (
  messages: readonly UiMessage[],
  { messageId, parts }: CommandOf<'edit'>,
  id: string,
) => {
  const question = messages.find((message) => message.id === messageId);
  if (question === undefined) return undefined;
  const after = messages.filter(isQuestion).indexOf(question);
  return { id, parts, kind: 'edit', after } as const;
};

type CommandOf<Type extends Command['type']> = Extract<Command, { readonly type: Type }>;

/** Loads a conversation, and sends requests of it. */
const sending = ({ id, server, state$ }: Context) => {
  const load$: Performing['load$'] = (at) => defer(() => server.history$(id, at)).pipe(map(loaded));
  const request$ = (messages: readonly UiMessage[], body: object, asked?: Unsent) =>
    concat(
      of(set({ sending: { messages, ...(asked && { id: asked.id }) } })),
      answered$(server.ask$(id, body), asked),
      // The ids of the server, and the versions. What this tab has asked stays in view, independent of other tabs.
      defer(() => load$(state$.value.messages.at(-1)?.id)).pipe(
        catchError((error: unknown) => (error instanceof Refusal ? load$() : EMPTY)),
        catchError(() => EMPTY),
      ),
      of<Update>((state) => (state.running === undefined ? { ...state, status: 'ready' } : state)),
    );
  /** Sends an unsent message, unless it has turned out that it has arrived. */
  const send$ = (messageId: string): Observable<Update> =>
    defer(() => {
      const { messages, unsent } = state$.value;
      const message = unsent.find((it) => it.id === messageId);
      if (message === undefined) return EMPTY;
      const isEdit = message.kind === 'edit';
      const replaced = isEdit ? messages.filter(isQuestion)[message.after] : undefined;
      if (replaced !== undefined) {
        const before = messages.slice(0, messages.indexOf(replaced));
        return request$(before, { ...placed(before, message), messageId: replaced.id }, message);
      }
      const sent = { ...message, after: messages.filter(isQuestion).length };
      const known = withCancelled(messages);
      return concat(of(added(sent)), request$(known, placed(messages, sent), sent));
    });
  return { load$, request$, send$ };
};

/** Whether a command leaves a running answer alone. */
export const isBeside = ({ type }: Command, { status }: Pick<Conversation, 'status'>): boolean =>
  /^(?:stop|steer|editing)$/u.test(type) ||
  (status === 'answering' && /^(?:result|failure|settle|change)$/u.test(type));

export const aside =
  ({ id, server, newId, state$ }: Context, own$: Subject<Command>) =>
  (command: Command): Observable<Update> => {
    switch (command.type) {
      case 'stop':
        return server
          .stop$(id)
          .pipe(catchError((error: unknown) => of(set({ problem: problemOf(error) }))));
      case 'result':
      case 'failure':
      case 'settle':
      case 'change':
        return of(kept(command));
      case 'editing': {
        const { elsewhere } = state$.value;
        const { messageId: editing } = command;
        const ended = set({ editing });
        if (editing !== undefined || elsewhere === undefined) return of(ended);
        return elsewhere === 'deleted'
          ? of(ended, deleted)
          : of(ended).pipe(
              tap({
                complete: () => {
                  own$.next({ type: 'load' });
                },
              }),
            );
      }
      case 'steer': {
        const { text } = command;
        const taken = steering((all) => all.filter((_, at) => at !== all.indexOf(text)));
        return concat(
          of(steering((waiting) => [...waiting, text])),
          server.steer$(id, text).pipe(
            tap((isDelivered) => {
              if (!isDelivered) own$.next({ type: 'ask', parts: [textPart(text)] });
            }),
            map(() => taken),
            catchError((error: unknown) => {
              const after = state$.value.messages.filter(isQuestion).length;
              const parts = [textPart(text)];
              const addition = { id: newId(), parts, kind: 'addition', after } as const;
              return of(taken, added(addition), set({ problem: problemOf(error) }));
            }),
          ),
        );
      }
      default:
        return EMPTY;
    }
  };

/** Follows an answer to its end. If the server forgets it, its question is unsent again. */
export const answered$ = (open$: Observable<Followed>, asked?: Unsent): Observable<Update> =>
  concat(of(cleared({})), followed$(open$, asked));

/** Follows an answer that this tab has not asked for: what the server has refused before stays in view. */
export const followed$ = (open$: Observable<Followed>, asked?: Unsent): Observable<Update> =>
  concat(
    of(set({ status: 'answering' })),
    open$.pipe(
      mergeMap((it): readonly Update[] => {
        switch (it.type) {
          case 'chunk':
            return [chunkUpdate(it.chunk)];
          case 'lost':
            return [set({ isReconnecting: true })];
          case 'back':
            return [set({ isReconnecting: false })];
          case 'gone':
            return asked === undefined ? [] : [added(asked)];
        }
      }),
    ),
    of(set({ ...settled, running: undefined })),
  );
