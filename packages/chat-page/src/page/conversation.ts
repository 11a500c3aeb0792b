import {
  BehaviorSubject,
  catchError,
  concat,
  defer,
  EMPTY,
  filter,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  startWith,
  Subject,
  switchMap,
  tap,
} from 'rxjs';
import { withChunk, withStart } from './message-chunks.js';
import { type Followed, type History, Refusal, type Server } from './server.js';
import { isQuestion, isToolCall, type UiMessage, type UiPart, waitingIn } from './ui-message.js';
import { type Drafts, hasArrived, neverSent, type Unsent } from './unsent.js';

/** A conversation, as the page shows it. */
export interface Conversation {
  readonly id: string;
  /** `loading` until the history is known; `answering` from a question to the end of its answer. */
  readonly status: 'loading' | 'ready' | 'answering';
  /** The connection was lost, and is tried again. */
  readonly isReconnecting: boolean;
  readonly messages: readonly UiMessage[];
  /** Messages that the server is not known to have: they come after all others. */
  readonly unsent: readonly Unsent[];
  /** The request whose answer has not begun. */
  readonly sending?: Sending | undefined;
  /** Messages for the running answer that it has not taken yet. */
  readonly steering: readonly string[];
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
  /** Generates an answer again, and removes all after it. */
  | { readonly type: 'regenerate'; readonly messageId: string }
  /** Replaces the text of a question, and removes all after it. */
  | { readonly type: 'edit'; readonly messageId: string; readonly text: string }
  /** Sends an unsent message, unless the server has it. */
  | { readonly type: 'retry'; readonly messageId: string }
  /** Removes an unsent message. */
  | { readonly type: 'discard'; readonly messageId: string }
  /** The result of a suspended tool call, or the reason for its failure. */
  | { readonly type: 'result'; readonly toolCallId: string; readonly output: unknown }
  | { readonly type: 'failure'; readonly toolCallId: string; readonly errorText: string }
  | { readonly type: 'load' }
  | { readonly type: 'stop' }
  | { readonly type: 'steer'; readonly text: string };

type Update = (state: Conversation) => Conversation;

const set =
  (change: Partial<Conversation>): Update =>
  (state) => ({ ...state, ...change });

/**
 * Loads a conversation, joins its running answer, and performs commands. Emits each state, many a second while an answer
 * arrives. Never completes or errors: failures are a `problem`, and messages that may not have arrived are `unsent`. Cold.
 */
export const conversation$ = (
  id: string,
  options: { readonly server: Server; readonly newId: () => string; readonly drafts: Drafts },
  command$: Observable<Command>,
): Observable<Conversation> =>
  defer(() => {
    const { server, newId, drafts } = options;
    const state$ = new BehaviorSubject<Conversation>({
      ...{ id, status: 'loading', isReconnecting: false, messages: [], steering: [] },
      unsent: drafts.read(id),
    });
    const own$ = new Subject<Command>();
    const all$ = merge(command$, own$);

    /** Loads the history, and joins the running answer. */
    const load$ = (): Observable<Update> =>
      defer(() => server.history$(id)).pipe(
        mergeMap(({ messages, isRunning }: History) =>
          concat(
            of(loaded(messages)),
            isRunning ? answer$(() => server.join$(id)) : of(set({ status: 'ready' })),
          ),
        ),
      );
    /** Follows an answer to its end. If the server forgets it, its question is unsent again. */
    const answer$ = (open$: () => Observable<Followed>, asked?: Unsent): Observable<Update> =>
      concat(
        of(cleared({ status: 'answering' })),
        defer(open$).pipe(
          switchMap((it): Observable<Update> => {
            switch (it.type) {
              case 'chunk':
                return of(chunkUpdate(it.chunk));
              case 'lost':
                return of(set({ isReconnecting: true }));
              case 'back':
                return of(set({ isReconnecting: false }));
              case 'gone':
                return asked === undefined ? load$() : concat(of(added(asked)), load$());
            }
          }),
        ),
        of(set({ status: 'ready', ...settled })),
      );
    const request$ = (messages: readonly UiMessage[], body: object, asked?: Unsent) =>
      concat(
        of(set({ sending: { messages, ...(asked && { id: asked.id }) } })),
        answer$(() => server.ask$(id, body), asked),
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
          const kept = messages.slice(0, messages.indexOf(replaced));
          const place = placeOf([...kept, { ...message, id: replaced.id }]);
          return request$(kept, { ...place, messageId: replaced.id }, message);
        }
        // The conversation takes no other message before the results.
        if (messages.slice(-1).flatMap(waitingIn).length > 0) return EMPTY;
        const sent = { ...message, after: messages.filter(isQuestion).length };
        return concat(of(added(sent)), request$(messages, { messages: [requestOf(sent)] }, sent));
      });

    const perform$ = (command: Command): Observable<Update> => {
      const { messages, status } = state$.value;
      switch (command.type) {
        case 'load':
          return load$();
        case 'ask': {
          const asked = newId();
          const { parts } = command;
          const question = { id: asked, parts, kind: 'question', after: neverSent } as const;
          const known$ = status === 'ready' ? EMPTY : load$();
          return concat(of(added(question)), known$, send$(asked));
        }
        case 'discard':
          return concat(of(removed(command.messageId)), load$());
        case 'retry':
          return concat(load$(), send$(command.messageId));
        case 'regenerate': {
          const at = messages.findIndex((message) => message.id === command.messageId);
          const kept = messages.slice(0, at);
          const { messageId } = command;
          const body = { ...placeOf(kept), trigger: 'regenerate-message', messageId };
          return request$(kept, body);
        }
        case 'edit': {
          const question = messages.find((message) => message.id === command.messageId);
          if (question === undefined) return EMPTY;
          const after = messages.filter(isQuestion).indexOf(question);
          const { parts } = withText(question, command.text);
          const edited = { id: question.id, parts, kind: 'edit', after } as const;
          return concat(of(added(edited)), send$(question.id));
        }
        case 'result':
        case 'failure': {
          const answered = messages.map((message) => withResult(message, command));
          const last = answered.at(-1);
          const shown$ = of(set({ messages: answered }));
          return last === undefined || waitingIn(last).length > 0
            ? shown$
            : concat(shown$, request$(answered, { messages: [requestOf(last)] }));
        }
        default:
          return EMPTY;
      }
    };
    const beside$ = (command: Command): Observable<Update> => {
      if (command.type !== 'steer') return EMPTY;
      const { text } = command;
      const taken = steering((waiting) => waiting.filter((_, at) => at !== waiting.indexOf(text)));
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
    };

    return merge(
      all$.pipe(
        filter(({ type }) => type !== 'stop' && type !== 'steer'),
        startWith<Command>({ type: 'load' }),
        switchMap((command) =>
          perform$(command).pipe(
            catchError((error: unknown) => {
              const { status, unsent } = state$.value;
              const canLoad = command.type === 'load' || !(error instanceof Refusal);
              const retry = { type: 'load' } as const;
              const failed = set({
                status: status === 'loading' ? status : 'ready',
                ...settled,
                problem: { ...problemOf(error), ...(canLoad && unsent.length === 0 && { retry }) },
              });
              const isStale = error instanceof Refusal && error.status === 409;
              return isStale
                ? concat(load$(), of(set({ problem: problemOf(error) }))).pipe(
                    catchError(() => of(failed)),
                  )
                : of(failed);
            }),
          ),
        ),
      ),
      all$.pipe(mergeMap(beside$)),
      all$.pipe(
        filter(({ type }) => type === 'stop'),
        switchMap(() =>
          server
            .stop$(id)
            .pipe(catchError((error: unknown) => of(set({ problem: problemOf(error) })))),
        ),
      ),
    ).pipe(
      map((update) => {
        const before = state$.value;
        const next = update(before);
        if (next.unsent !== before.unsent) drafts.write(id, next.unsent);
        return next;
      }),
      tap(state$),
      startWith(state$.value),
    );
  });

/** Nothing is on its way. */
const settled = { isReconnecting: false, sending: undefined } as const;

/** The state with the history. */
const loaded =
  (messages: readonly UiMessage[]): Update =>
  (state) =>
    cleared({
      messages,
      ...settled,
      unsent: state.unsent.filter((message) => !hasArrived(message, messages)),
    })(state);

const removed =
  (id: string | undefined): Update =>
  (state) => ({ ...state, unsent: state.unsent.filter((message) => message.id !== id) });

/** The state with an unsent message, instead of an earlier one with its id. */
const added =
  (message: Omit<Unsent, 'role'>): Update =>
  (state) => {
    const { unsent } = removed(message.id)(state);
    return cleared({ unsent: [...unsent, { role: 'user', ...message }] })(state);
  };

/** Sets the state, and forgets the last problem. */
const cleared =
  (change: Partial<Conversation>): Update =>
  ({ problem: _, ...state }) => ({ ...state, ...change });

const steering =
  (change: (waiting: readonly string[]) => readonly string[]): Update =>
  (state) => ({ ...state, steering: change(state.steering) });

const problemOf = (error: unknown): { readonly text: string } => ({
  text: error instanceof Refusal ? error.message : 'The server cannot be reached.',
});

const chunkUpdate =
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

// ---------------------------------------------------------------- requests

export const textPart = (text: string): UiPart => ({ type: 'text', text, isOpen: false });

const withText = (message: UiMessage, text: string): UiMessage => ({
  ...message,
  parts: [textPart(text), ...message.parts.filter(({ type }) => type === 'file')],
});

/** The messages that mark the cut in the conversation: the last answer before the question, and the question. */
const placeOf = (kept: readonly UiMessage[]): { readonly messages: readonly object[] } => {
  const answer = kept.findLast(({ role }) => role === 'assistant');
  const before = answer === undefined ? [] : [{ ...answer, parts: [] }];
  return { messages: [...before, ...kept.slice(-1).map(requestOf)] };
};

const withResult = (
  message: UiMessage,
  command: Extract<Command, { type: 'result' | 'failure' }>,
): UiMessage => ({
  ...message,
  parts: message.parts.map((part) =>
    !isToolCall(command.toolCallId)(part)
      ? part
      : command.type === 'result'
        ? { ...part, state: 'done', output: command.output }
        : { ...part, state: 'failed', errorText: command.errorText },
  ),
});

/** A message in the protocol of the AI SDK. */
const requestOf = ({ id, role, parts }: UiMessage): object => ({
  ...{ id, role },
  parts: parts.flatMap((part): readonly object[] => {
    switch (part.type) {
      case 'text':
        return [{ type: 'text', text: part.text }];
      case 'file':
      case 'step-start':
        return [part];
      case 'suspended':
        return [{ type: 'data-suspended', id: part.data.toolCallId, data: part.data }];
      case 'tool': {
        const { toolName, toolCallId, input, output, errorText } = part;
        const state = part.state === 'done' ? 'output-available' : 'output-error';
        return part.state === 'done' || part.state === 'failed'
          ? [{ type: `tool-${toolName}`, toolCallId, state, input, output, errorText }]
          : [];
      }
      default:
        return [];
    }
  }),
});
